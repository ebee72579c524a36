"""Which sizes a benchmark takes."""

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.declaration import Declaration, Options
from pytorch_to_triton.inputs.sizes import Point, largest_point
from pytorch_to_triton.inputs.timing_dims import HeldBytes, timing_dims

AT_LEAST_BYTES = (0, 2**22, 2**25, 2**28)
"""Of the inputs or the largest value, where the caller names no sizes: as declared, in the cache, past it,
far past it."""


def sweep(
    declaration: Declaration,
    options: Options,
    named: Sequence[Point] = (),
    held: HeldBytes | None = None,
) -> tuple[Point, ...]:
    """The points to time, smallest inputs first.

    `named` points are taken as they are, with the largest sizes of dims that they do not name. Of sizes that
    the caller named alone, one dimension varies at a time, the others at their largest. Otherwise the largest
    declared sizes, and larger ones, by the inputs and what is `held` besides. Raises BadInput where no named
    sizes meet the requirements.
    """
    if not options.dims and not named:
        grown = (timing_dims(declaration, at_least_bytes=size, held=held) for size in AT_LEAST_BYTES)
        return distinct(grown)
    largest = largest_point(declaration.dims)
    wanted = [{**largest, **point} for point in named] or points_asked_for(declaration, options)
    points = distinct(point for point in wanted if declaration.violated(point) is None)
    if not points:
        raise BadInput(
            "None of the named sizes meets the requirements: " + "; ".join(declaration.requires),
            "Name other sizes.",
        )
    return points


def points_asked_for(declaration: Declaration, options: Options) -> Iterator[Point]:
    """The largest point, and from there every size that was named."""
    largest = largest_point(declaration.dims)
    for name in options.dims:
        for size in sorted(declaration.dims[name]):
            yield {**largest, name: size}


def distinct(points: Iterable[Point]) -> tuple[Point, ...]:
    """Each point once, in their order of elements."""
    by_sizes = {tuple(point.items()): point for point in points}
    return tuple(sorted(by_sizes.values(), key=lambda point: (prod(point.values()), tuple(point.values()))))
