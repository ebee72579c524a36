"""Sizes at which a trace holds: all of the declared ones have to be among them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import holds, names_in
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.graph import Graph

FIXED_HINT = (
    "Somewhere a size becomes a plain number: len() or int() in another file, NumPy, an argument that takes "
    "plain numbers only. Compute it from x.shape with operators and `math`, or declare sizes that meet it."
)
OPPOSITES: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
POINTS = 10_000


def sizes_that_shape(graph: Graph, declaration: Declaration) -> dict[str, int]:
    """The dims with one declared size at which the trace does not hold: a loop over it, or a branch on it.

    They have to be numbers in the declaration, for the program to be that of their sizes.
    """
    points = declared_points(declaration.dims, declaration.requires)
    named = {name for guard in graph.guards if met_at(guard, points) == [] for name in names_in(guard)}
    return {name: sizes[0] for name, sizes in declaration.dims.items() if name in named and len(sizes) == 1}


def refuse_unmet(graph: Graph, dims: Mapping[str, Sequence[int]], requires: Sequence[str]) -> None:
    """Raises NotConvertible where the trace does not hold at all of the declared sizes."""
    points = declared_points(dims, requires)
    for guard in graph.guards:
        met = met_at(guard, points)
        if not met and points:
            where = f"where {guard}, which no declared sizes meet"
            raise NotConvertible(f"{graph.function} can be traced only {where}.", _fixing_hint(guard, dims))
        if len(met) < len(points):
            raise NotConvertible(
                f"{graph.function} computes something else at sizes where {guard} than at others, and sizes "
                "of both kinds are declared.",
                f"Convert each kind by itself: {_two_kinds(guard, dims)}.",
            )


def declared_points(dims: Mapping[str, Sequence[int]], requires: Sequence[str]) -> list[Point]:
    """The declared sizes, each with each, that meet the requirements."""
    points = (dict(zip(dims, sizes, strict=True)) for sizes in islice(product(*dims.values()), POINTS))
    return [point for point in points if all(holds(text, point) for text in requires)]


def met_at(guard: str, points: Sequence[Point]) -> list[Point]:
    """The points at which the guard holds, as far as its text can be evaluated."""

    def met() -> Iterator[Point]:
        for point in points:
            try:
                if holds(guard, point):
                    yield point
            except (TypeError, KeyError):
                # A function of sizes, such as math.sqrt, which `run` computes.
                yield point

    return list(met())


def _two_kinds(guard: str, dims: Mapping[str, Sequence[int]]) -> str:
    """The options that declare sizes where the guard holds, and those that declare the others."""
    match ast.parse(guard, mode="eval").body:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.NotEq()]) if name in dims:
            kinds = ([n for n in dims[name] if holds(guard, {name: n}) is met] for met in (True, False))
            first, second = (f"--dim {name}={','.join(map(str, sizes))}" for sizes in kinds)
        case ast.Compare(ops=[operator]) as comparison if type(operator) in OPPOSITES:
            first = f"--require '{guard}'"
            comparison.ops = [OPPOSITES[type(operator)]()]
            second = f"--require '{ast.unparse(comparison)}'"
        case _:
            first, second = f"--require '{guard}'", f"--require 'not ({guard})'"
    return f"{first}, and {second}"


def _fixing_hint(guard: str, dims: Mapping[str, Sequence[int]]) -> str:
    """What to do about a size that shapes the program: it has to be a number, in a conversion for each."""
    several = {name: sizes for name, sizes in dims.items() if name in names_in(guard) and len(sizes) > 1}
    if not several:
        return FIXED_HINT
    name, sizes = next(iter(several.items()))
    return (
        f"The size {name} shapes the program: a loop over it, a branch on it, len() or int(). Convert it for "
        f"each of its sizes by itself, starting with --dim {name}={sizes[0]}."
    )
