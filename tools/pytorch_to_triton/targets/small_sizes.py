"""Sizes at which a fixed problem is tried beside its own: few elements, and mistakes show."""

from collections.abc import Iterator
from math import prod

from pytorch_to_triton.inputs.expression import holds
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.worker.wire.tracing import FreeSizes

SMALL = 3
MIDDLE = (64, 48, 32, 24, 16, 12, 8, 6, 4)
MIDDLE_ELEMENTS = 2**16
"""Over all inputs, at most, where a problem gets that small."""
STEPS = 1_000
"""How far away the next size may be that meets all requirements."""


def sizes_to_try(free: FreeSizes) -> dict[str, list[int]]:
    """For each dim a small size, a middle one and the declared one, in this order."""
    points = [size_of_all(free, SMALL), middle_point(free), free.dims]
    return {name: sorted({point[name] for point in points}) for name in free.dims}


def middle_point(free: FreeSizes) -> Point:
    """All dims at about the same size: the largest whose inputs are small, else the smallest."""
    points = [size_of_all(free, size) for size in MIDDLE]
    return next((point for point in points if elements_at(free, point) <= MIDDLE_ELEMENTS), points[-1])


def size_of_all(free: FreeSizes, size: int) -> Point:
    """Each dim at this size or the next that is allowed, not above its declared one."""
    return {
        name: next(allowed_from(free, name, min(size, declared)), declared)
        for name, declared in free.dims.items()
    }


def allowed_from(free: FreeSizes, name: str, size: int) -> Iterator[int]:
    """The sizes up to the declared one at which the requirements hold, the other dims as declared."""
    sizes = range(size, min(size + STEPS, free.dims[name] + 1))
    return (n for n in sizes if all(holds(text, {**free.dims, name: n}) for text in free.requires))


def elements_at(free: FreeSizes, point: Point) -> int:
    shapes = free.shapes.values()
    return sum(prod(int(size) if size.isdigit() else point[size] for size in shape) for shape in shapes)
