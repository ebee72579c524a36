"""Blocks whose neighbouring lanes lie apart in memory: each lane then moves a sector of its own."""

from .formats import Array

SECTOR_BYTES = 32
"""What memory moves at least, however little of it is asked for."""
FEWEST_LANES = 32
"""A warp's."""


def step_of(addresses: Array) -> int | None:
    """Bytes from lane to lane along the axis where they lie nearest; 0 where lanes share a place.

    None where there are too few lanes to know, and where they follow no order, as in a gather.
    """
    if addresses.size < FEWEST_LANES:
        return None
    signed = addresses.astype("int64")
    steps = []
    for axis, size in enumerate(addresses.shape):
        if size > 1:
            apart = signed.take(range(1, size), axis) - signed.take(range(size - 1), axis)
            first = int(apart.flat[0])
            if (apart != first).any():
                return None
            steps.append(abs(first))
    return min(steps)
