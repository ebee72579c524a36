"""A range of statements as a function of its own, with what it takes: from what the variables of the whole
function held in several runs.
"""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pytorch_to_triton.convert.cuts.function_text import (
    FunctionText,
    Lines,
    Replacing,
    loaded,
    statements,
    stored,
)
from pytorch_to_triton.convert.cuts.ranges import Ranges, StatementRange
from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.shown_inputs import size_text
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import names_in
from pytorch_to_triton.inputs.input_spec import ConstantSpec, InputSpec, TensorSpec
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.worker.wire.tracing import Held, PartSource

FREE_SIZES = (1, 5, 40)
"""At which a size that depends on values is tried."""

Seen = Mapping[int, Sequence[Held]]
"""What a variable held whenever a run came to a statement, by the run's number."""


@dataclass
class SizesSeen:
    """The sizes of tensors over dims; those that follow from no declared dim are dims of their own."""

    points: Sequence[Point]
    """The declared dims in each run."""
    of_values: frozenset[tuple[int, int]]
    """A run and a size in it that depends on values."""
    taken: set[str] = field(default_factory=set)
    free: dict[tuple[int | None, ...], str] = field(default_factory=dict)
    """Dims that several tensors may share, by the sizes that they stand for."""
    names: list[str] = field(default_factory=list)
    """All dims that were added."""

    def text(self, seen: Sequence[int | None]) -> str:
        """A size by run; None where it changed within one."""
        if None not in seen and not all((run, size) in self.of_values for run, size in enumerate(seen)):
            if text := size_text(seen, self.points):
                return text
        elif None in seen or size_text(seen, self.points):
            return self.added()  # No two tensors can be known to share it.
        if tuple(seen) not in self.free:
            self.free[tuple(seen)] = self.added()
        return self.free[tuple(seen)]

    def added(self) -> str:
        """A dim of its own."""
        name = fresh("K", self.taken)
        self.taken.add(name)
        self.names.append(name)
        return name


def spec_of(name: str, seen: Seen, sizes: SizesSeen) -> TensorSpec:
    """A tensor as it is declared. Raises NotConvertible where its rank or its dtype changes within a run."""
    runs = [seen[run] for run in sorted(seen)]
    ranks = {len(held.shape) for run in runs for held in run}
    if len(ranks) != 1 or any(len({held.dtype for held in run}) != 1 for run in runs):
        raise NotConvertible(f"{name} has another rank or dtype from one time to the next", "")
    shape = (
        sizes.text([only(held.shape[axis] for held in run) for run in runs]) for axis in range(ranks.pop())
    )
    dtypes = dict.fromkeys(run[0].dtype for run in runs)
    return TensorSpec.model_validate({"dtypes": tuple(dtypes), "shape": tuple(shape)})


def only(values: Iterable[int]) -> int | None:
    """The value, where there is one alone."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def number_source(seen: Seen, points: Sequence[Point], tensors: Mapping[str, Sequence[str]]) -> str | None:
    """An integer as source over the sizes of `tensors`; None where it follows from them in no plain way."""
    runs = [only({int(held.value or 0) for held in seen[run]}) for run in sorted(seen)]
    text = None if None in runs else size_text(runs, points)
    if text is None:
        return None
    for dim in names_in(text):
        places = ((name, list(shape).index(dim)) for name, shape in tensors.items() if dim in shape)
        if (found := next(places, None)) is None:
            return None
        text = text.replace(dim, f"{found[0]}.shape[{found[1]}]")
    return text


NAME = "part"
"""What a part is called while it is traced."""
EXAMPLE = 0.3723984
"""A number to trace with."""
ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Name, ast.Constant, ast.expr_context)


@dataclass(frozen=True)
class Outline:
    """A range as a function."""

    source: PartSource
    arguments: Mapping[str, str]
    """Its parameters but for the module, each with what is passed for it."""
    declaration: Declaration
    """Of its parameters."""
    numbers: frozenset[str]
    """Parameters that are numbers, other ones from call to call; kernels take them as floats."""
    whole: frozenset[str]
    """Those of them that are whole numbers."""
    shares_memory: bool
    """Whether two of its tensors share their memory."""


def outline(ranges: Ranges, each: StatementRange, sizes: SizesSeen, whole: Declaration) -> Outline:
    """Raises NotConvertible where the range takes what no kernel can."""
    held = {name: held_before(ranges, name, each.line) for name in each.reads}
    kinds = {name: next(iter(seen.values()))[0].kind for name, seen in held.items()}
    tensors = {name: spec_of(name, held[name], sizes) for name in held if kinds[name] == "tensor"}
    shapes = {name: spec.shape for name, spec in tensors.items()}
    constants: dict[str, ConstantSpec] = {}
    sources: dict[str, str] = {}
    numbers: set[str] = set()
    for name in [name for name in held if name not in tensors]:
        values = {each.value for run in held[name].values() for each in run}
        if kinds[name] == "float" or name in ranges.changing:
            numbers.add(name)
        elif len(values) == 1:
            constants[name] = ConstantSpec(value=values.pop())
        elif source := number_source(held[name], sizes.points, shapes):
            sources[name] = source
        else:
            numbers.add(name)
    chosen, passed = with_numbers(each, numbers, ranges.function)
    examples = dict.fromkeys(passed, ConstantSpec(value=EXAMPLE))
    inputs: dict[str, InputSpec] = {**tensors, **constants, **examples}
    receiver = [name for name in (ranges.function.receiver,) if any(name in loaded(s) for s in chosen)]
    text, lines = function_source(chosen, [*receiver, *inputs], sources, each.gives, ranges.function.lines)
    part = PartSource(name=NAME, text=text, lines=lines, of_module=bool(receiver))
    floats = {name for name, kind in kinds.items() if kind == "float"}
    integers = frozenset(name for name, text in passed.items() if not names_in(text) & floats)
    arguments = {name: name for name in inputs} | passed | {n: f"float({passed[n]})" for n in integers}
    shared = share_memory([held[name] for name in tensors])
    declaration = declared(inputs, sizes, whole)
    return Outline(part, arguments, declaration, frozenset(passed), integers, shared)


def share_memory(tensors: Sequence[Mapping[int, list[Held]]]) -> bool:
    """Whether two tensors do in some run; those without elements have none."""
    memories = [{(run, each.memory) for run in seen for each in seen[run] if each.memory} for seen in tensors]
    return sum(map(len, memories)) > len(set().union(*memories))


def held_before(ranges: Ranges, name: str, line: int) -> dict[int, list[Held]]:
    """What a variable held whenever a run came to a statement, by run."""
    found: defaultdict[int, list[Held]] = defaultdict(list)
    for visit in ranges.visits[line]:
        if name in visit.before:
            found[visit.case].append(visit.before[name])
    return found


def with_numbers(
    each: StatementRange, numbers: set[str], function: FunctionText
) -> tuple[list[ast.stmt], dict[str, str]]:
    """The statements with a parameter for each expression of nothing but numbers, and those expressions."""
    free = numbers - {name for statement in each.statements for name in stored(statement)}
    taken = set(function.names())
    names: dict[str, str] = {}

    def named(node: ast.AST) -> ast.Name | None:
        if not isinstance(node, ast.expr) or not is_arithmetic(node, free):
            return None
        source = ast.unparse(node)
        if source not in names:
            names[source] = source if isinstance(node, ast.Name) else fresh("number", taken)
            taken.add(names[source])
        return ast.copy_location(ast.Name(names[source], ast.Load()), node)

    chosen = [Replacing(named).visit(copy.deepcopy(statement)) for statement in each.statements]
    return chosen, {name: source for source, name in names.items()}


def is_arithmetic(node: ast.expr, numbers: set[str]) -> bool:
    """Whether it is computed from these numbers alone."""
    nodes, names = [*ast.walk(node)], loaded(node)
    return all(isinstance(n, ARITHMETIC) for n in nodes) and bool(names) and names <= numbers


def function_source(
    chosen: list[ast.stmt],
    parameters: list[str],
    sources: Mapping[str, str],
    gives: tuple[str, ...],
    lines: Mapping[int, Lines],
) -> tuple[str, tuple[int, ...]]:
    """The range as a function, whose first statements are sizes of its tensors.

    Of each of its nodes, in the order of ast.walk, the line in the user's file, by `lines` of statements.
    """
    head = [f"{name} = {source}" for name, source in sources.items()]
    tail = [f"return {', '.join(gives)}"] if gives else []
    frame = ast.parse("\n    ".join([f"def {NAME}({', '.join(parameters)}):", *head, *tail, "..."]))
    (function,) = frame.body
    assert isinstance(function, ast.FunctionDef)
    *first, _ = function.body
    function.body = [*first[: len(head)], *chosen, *first[len(head) :]]
    inner = [s for each in chosen for s in (each, *statements(each))]
    line_of = {s: lines[s.lineno][0] for s in inner} | dict.fromkeys(
        first[len(head) :], lines[inner[-1].lineno][0]
    )
    # Inner statements come later, and win.
    by_node = {node: line for s, line in line_of.items() for node in ast.walk(s)}
    beginning = lines[inner[0].lineno][0]
    return ast.unparse(frame), tuple(
        by_node.get(node, beginning) for node in ast.walk(frame) if hasattr(node, "lineno")
    )


def declared(inputs: Mapping[str, InputSpec], sizes: SizesSeen, whole: Declaration) -> Declaration:
    """The parameters with the dims that they name, and what is required of those."""
    tensors = (spec for spec in inputs.values() if isinstance(spec, TensorSpec))
    named = frozenset(name for spec in tensors for size in spec.shape for name in names_in(size))
    dims = {**whole.dims, **dict.fromkeys(sizes.names, FREE_SIZES)}
    return Declaration(
        inputs=dict(inputs),
        dims={name: tried for name, tried in dims.items() if name in named},
        requires=tuple(text for text in whole.requires if names_in(text) <= named),
    )
