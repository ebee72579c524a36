"""Sizes at which a trace holds: none of the declared ones may be left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.expression import holds
from pytorch_to_triton.schema.graph import Graph

FIXED_HINT = (
    "Somewhere a size becomes a plain number: len() or int() in another file, NumPy, an argument that takes "
    "plain numbers only. Compute it from x.shape with operators and `math`, or declare sizes that meet it."
)
POINTS = 10_000


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
