"""Everything that prevents a draft, collected in one pass over the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.call_arguments import bound, written
from pytorch_to_triton.graph.operators import NORMALISATIONS, POINTWISE, REDUCTIONS
from pytorch_to_triton.graph.views import SPLIT, VIEWS
from pytorch_to_triton.inputs.expression import holds
from pytorch_to_triton.schema.graph import ArgumentList, Graph, Literal_, Node, NodeArgument

HINT = "Keep that outside of the function to convert, or write its kernel by hand and validate it."
FLOATS = ("float16", "bfloat16", "float32", "float64")


FIXED_HINT = (
    "Somewhere a size becomes a plain number: len() or int() in another file, NumPy, an argument that takes "
    "plain numbers only. Compute it from x.shape with operators and `math`, or declare sizes that meet it."
)
POINTS = 10_000


@dataclass(frozen=True)
class Obstacle:
    """An operator call that cannot be drafted."""

    op: str
    line: int | None
    reason: str = ""
    """Empty where nothing drafts the operator at all."""
    hint: str = HINT

    @property
    def operator(self) -> str:
        """The operator without the overload that says nothing."""
        return f"`{self.op.removesuffix('.default')}`"


def refusal(function: str, obstacles: Sequence[Obstacle]) -> NotConvertible:
    """One refusal that names every obstacle with its lines."""
    lines: dict[tuple[str, str], list[int]] = {}
    for obstacle in obstacles:
        found = lines.setdefault((obstacle.operator, obstacle.reason), [])
        if obstacle.line is not None and obstacle.line not in found:
            found.append(obstacle.line)
    named = [_named(operator, at, reason) for (operator, reason), at in lines.items()]
    separator = "; " if any(reason for _, reason in lines) else ", "
    hints = dict.fromkeys(obstacle.hint for obstacle in obstacles)
    return NotConvertible(f"{function} cannot be drafted: {separator.join(named)}.", " ".join(hints))


def _named(operator: str, lines: Iterable[int], reason: str) -> str:
    at = ", ".join(map(str, lines))
    place = f" (line{'s' if ',' in at else ''} {at})" if at else ""
    return f"{operator}{place}{': ' if reason else ''}{reason}"


def obstacle_of(node: Node, source_dtype: str | None) -> Obstacle | None:
    """Why no row drafts this call as it stands; `source_dtype` is that of its first tensor."""
    if not any(node.op in rows for rows in (VIEWS, SPLIT, REDUCTIONS, NORMALISATIONS, POINTWISE)):
        return Obstacle(node.op, node.line)
    given = bound(node)
    ignored = [f"{name}={written(value)}" for name, value in given.ignored.items()]
    reasons = [f"{', '.join(ignored)} is not drafted"] if ignored else []
    reasons += [r for name, value in given.options.items() if (r := _option(node, name, value, source_dtype))]
    return Obstacle(node.op, node.line, "; ".join(reasons)) if reasons else None


def _option(node: Node, name: str, value: NodeArgument, source: str | None) -> str | None:
    """Why an option that the row reads cannot be followed at this value."""
    plain = isinstance(value, Literal_) or _literals(value)
    known = {
        "approximate": isinstance(value, Literal_) and value.value in ("none", "tanh"),
        "dim": plain,
        "keepdim": plain,
        "correction": plain,
        "dtype": node.op in POINTWISE or (isinstance(value, Literal_) and _widens(source, value.value, node)),
    }
    return None if known.get(name, True) else f"{name}={written(value)} is not drafted"


def _literals(value: NodeArgument) -> bool:
    return isinstance(value, ArgumentList) and all(isinstance(item, Literal_) for item in value.items)


def _widens(source: str | None, dtype: object, node: Node) -> bool:
    """Whether the values can be taken as they are: what is shorter than float32 is computed in it."""
    if dtype in (None, source):
        return True
    if source in FLOATS:
        return dtype == "float32" and source != "float64"
    return node.op in REDUCTIONS and dtype in ("int64", "float32")


def refuse_unmet(graph: Graph, dims: Mapping[str, Sequence[int]], requires: Sequence[str]) -> None:
    """Raises NotConvertible where the trace holds at none of the declared sizes."""
    points = (dict(zip(dims, sizes, strict=True)) for sizes in islice(product(*dims.values()), POINTS))
    declared = [point for point in points if all(holds(text, point) for text in requires)]
    for guard in graph.guards:
        if declared and not any(_may_hold(guard, point) for point in declared):
            where = f"where {guard}, which no declared sizes meet"
            raise NotConvertible(f"{graph.function} can be traced only {where}.", FIXED_HINT)


def _may_hold(guard: str, point: Mapping[str, int]) -> bool:
    try:
        return holds(guard, point)
    except (TypeError, KeyError):
        # A function of sizes, such as math.sqrt, which `run` computes.
        return True
