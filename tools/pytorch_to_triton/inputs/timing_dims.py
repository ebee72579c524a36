"""The sizes worth timing: large enough that memory traffic, not launch overhead, is measured."""

from collections.abc import Callable, Iterable, Iterator

from pytorch_to_triton.errors import BadDeclaration, BadInput
from pytorch_to_triton.inputs.declaration import Declaration, unused_dim
from pytorch_to_triton.inputs.expression import names_in, point_name
from pytorch_to_triton.inputs.sizes import Point, largest_point, smallest_first

HeldBytes = Callable[[Point], int]
"""Bytes of the largest value that a computation has at these sizes."""


def timing_dims(
    declaration: Declaration, *, at_least_bytes: int, held: HeldBytes | None = None
) -> dict[str, int]:
    """The largest declared sizes, with one dimension doubled until the input tensors together, or the largest
    value that is `held` besides, have `at_least_bytes`.

    Of N x N values from N inputs the second is reached first, by far. Bytes of inputs are counted in the
    first declared dtypes. The doubled dimension is the first that no requirement
    mentions, else the first whose doubling keeps the requirements; where none can grow, there
    are fewer bytes. Where a file generates its inputs itself, their sizes and no larger ones. Raises
    BadInput when they cannot be generated at any declared sizes.
    """
    if declaration.generated:
        return dict(declaration.generated)
    point = declaration.nearest(largest_point(declaration.dims))
    if point is None:
        raise BadInput(
            "The inputs cannot be generated at any of the declared sizes.",
            "Declare sizes that meet the requirements and at which no range is empty.",
        )
    while point is not None:
        largest = point
        if max(declaration.bytes_at(largest), held(largest) if held else 0) >= at_least_bytes:
            break
        point = next(_doubled(declaration, largest), None)
    return largest


def _doubled(declaration: Declaration, point: Point) -> Iterator[Point]:
    """The points with one dimension doubled at which inputs can be generated and hold more."""
    mentioned = frozenset().union(*(names_in(text) for text in declaration.requires))
    for name in sorted(point, key=lambda name: name in mentioned):
        larger = {**point, name: 2 * point[name]}
        if declaration.takes(larger) and declaration.bytes_at(larger) > declaration.bytes_at(point):
            yield larger


def named_points(declaration: Declaration, points: Iterable[Point]) -> tuple[Point, ...]:
    """The points of `--at`, the smallest first, each with a size of every dim: of one that it does not name,
    the largest declared one with which a call can be made.

    Raises BadDeclaration for a dim that no input uses, BadInput for sizes at which no call can be made.
    """
    return smallest_first(_whole(declaration, point) for point in points)


def _whole(declaration: Declaration, point: Point) -> Point:
    dims = declaration.dims
    for name, size in point.items():
        if name not in dims:
            raise unused_dim(name, [size], dims)
    largest = {**largest_point(dims), **point}
    whole = declaration.nearest(largest, fixed=point)
    if whole is None:
        broken = declaration.violated(largest)
        why = f"{broken} does not hold" if broken else _why_no_call(declaration, largest)
        raise BadInput(f"--at: no call can be made at {point_name(largest)}: {why}.", "Name other sizes.")
    return whole


def _why_no_call(declaration: Declaration, point: Point) -> str:
    try:
        declaration.arguments(point)
    except BadDeclaration as refusal:
        return refusal.message.partition("\n")[0].rstrip(".")
    return "its inputs have no values"


def filled_in(points: Iterable[Point], wholes: Iterable[Point]) -> str:
    """What the points left to `named_points`, as a sentence; empty where they name every dim."""
    named = frozenset().union(*points)
    added = (f"{name}={size}" for whole in wholes for name, size in whole.items() if name not in named)
    listed = ", ".join(dict.fromkeys(added))
    return f"Dims that --at leaves out have their largest declared sizes: {listed}." if listed else ""
