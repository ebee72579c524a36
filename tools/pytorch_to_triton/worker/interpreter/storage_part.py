"""The lanes of one operation that touch one storage, and which of them a thread of their own stands for."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from .owners import Array

LANE_BITS = 21
"""For a lane's place in its block: the largest block has 2^20."""
SHAPES = 1 << 10
SHAPE_NUMBERS: dict[tuple[int, ...], int] = {(): 0}
"""By a block's lengths, without its axes of one lane."""


@dataclass(frozen=True)
class StoragePart:
    """The lanes of one operation that touch one storage."""

    storage: int
    addresses: Array
    """uint64 [lanes], each the first byte of an element."""
    width: int
    """Bytes of an element: a power of two."""
    inside: Array
    """Which lanes of the block these are: bool, of the block's shape."""

    @property
    def lanes(self) -> Array:
        """Each lane's place and its block's shape, int32 [lanes]: where both are alike, so is the thread."""
        numbers = lane_numbers(self.inside.shape)
        return numbers.ravel() if len(self.addresses) == numbers.size else numbers[self.inside]


@functools.cache
def lane_numbers(shape: tuple[int, ...]) -> Array:
    """Each lane's place in a block, and in the upper bits a number of its shape, which is 0 for one lane."""
    lengths = tuple(length for length in shape if length > 1)
    number = SHAPE_NUMBERS.setdefault(lengths, len(SHAPE_NUMBERS) % SHAPES)
    return np.arange(math.prod(shape), dtype=np.int32).reshape(shape) | number << LANE_BITS


def is_scalar(lanes: Array) -> Array:
    """Which of the numbers are of a lane that is alone in its block."""
    alone: Array = lanes < 1 << LANE_BITS
    return alone
