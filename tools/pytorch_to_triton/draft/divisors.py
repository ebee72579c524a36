"""What divides a dim: views that cut by it need no division of an index, as in D = G * (D // G)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.schema.graph import Graph

DIVISOR = r"(\w+|\([\w *]+\))"
"""In a guard: a number, a dim, or a product of them in parentheses."""


def divisors_of(graph: Graph) -> dict[str, Size]:
    """Dim -> what divides it wherever the trace holds, by guards such as `D % 4 == 0` and `D % G == 0`.

    Dims count where they cut a shape of the trace that no number cuts; of several, what cuts most shapes.
    """
    numbers: dict[str, int] = {}
    dims: list[tuple[str, Size]] = []
    for name, divisor in _divisions(graph.guards):
        if divisor.is_Integer:
            numbers[name] = math.lcm(numbers.get(name, 1), int(divisor))
        elif _is_product(divisor) and name not in sizes.names(divisor):
            dims.append((name, divisor))
    cuts = _cuts(graph) if dims else Counter()
    cut_by_numbers = {name for name, divisor in cuts if divisor.is_Integer}
    chosen = {n: d for n, d in sorted(dims, key=cuts.__getitem__) if cuts[n, d] and n not in cut_by_numbers}
    return {**numbers, **chosen}


def _divisions(guards: Sequence[str]) -> Iterator[tuple[str, Size]]:
    """Dims, each with what divides it by a guard."""
    for guard in guards:
        if divided := re.fullmatch(rf"(\w+) % {DIVISOR} == 0", guard):
            yield divided[1], sizes.size(divided[2])


def _is_product(divisor: Size) -> bool:
    """Of dims and numbers."""
    return all(f.is_Symbol or f.is_Integer for f in divisor.as_ordered_factors())


def _cuts(graph: Graph) -> Counter[tuple[str, Size]]:
    """How often a dim is divided by what in the shapes of the trace."""
    shapes = (n.shape.expressions for n in graph.nodes if n.shape is not None)
    divisions = (sizes.size(e).atoms(sizes.FloorDiv) for shape in shapes for e in shape)
    return Counter((str(d.args[0]), d.args[1]) for found in divisions for d in found)
