"""The memory that one launch may touch, and which tensor a stray address was meant for."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..allocation import Range
from .formats import Array


@dataclass(frozen=True)
class Argument:
    """A tensor given to a launch: the range that it lies in, and its first element's address."""

    memory: Range
    first: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


class Bounds:
    """The byte ranges that one launch may touch, disjoint and ascending, and the tensors given to it."""

    def __init__(self, ranges: Iterable[Range], arguments: list[Argument]) -> None:
        known = merge_ranges(ranges)
        # A known range is narrower than the storage where several tensors were cut from one allocation.
        self.ranges = merge_ranges([*known, *(a.memory for a in arguments if not lies_in(known, a.first))])
        self.spans = [(r.start, r.end) for r in self.ranges]
        self.starts = [r.start for r in self.ranges]
        self.start_array = np.array(self.starts, dtype=np.uint64)
        self.end_array = np.array([r.end for r in self.ranges], dtype=np.uint64)
        self.arguments = {a.memory.name: self.within_range(a) for a in arguments}

    def within_range(self, argument: Argument) -> Argument:
        index = self.holder(argument.first, argument.first + 1)
        if index < 0:
            return argument
        start, end = self.spans[index]
        return replace(argument, memory=replace(argument.memory, start=start, end=end))

    def holder(self, start: int, end: int) -> int:
        """The index of the range that holds bytes [start, end), else -1."""
        index = bisect_right(self.starts, start) - 1
        return index if index >= 0 and end <= self.spans[index][1] else -1

    def holders(self, addresses: Array, width: int) -> Array:
        """For each address, the index of the range that holds `width` bytes from it on, else -1."""
        if not self.starts:
            return np.full(addresses.shape, -1)
        index = np.searchsorted(self.start_array, addresses, side="right") - 1
        ends = self.end_array[index]
        inside = (index >= 0) & (addresses < ends) & (ends - addresses >= np.uint64(width))
        return np.where(inside, index, -1)

    def tensor_at(self, address: int, origin: str | None, neighbour: int) -> Argument:
        """The tensor that `address` was most likely meant for.

        That is the argument `origin` where it is known; else one in range `neighbour`, where other lanes of
        the same operation lie, unless that is -1; else the argument nearest.
        """
        if origin is not None:
            return self.arguments[origin]
        candidates = list(self.arguments.values())
        if neighbour >= 0:
            start = self.starts[neighbour]
            candidates = [a for a in candidates if a.memory.start == start < a.memory.end] or [
                Argument(self.ranges[neighbour], start)
            ]
        candidates = candidates or [Argument(r, r.start) for r in self.ranges]
        before = [a for a in candidates if a.first <= address < a.memory.end]
        if before:
            return max(before, key=lambda a: a.first)
        nowhere = Argument(Range(0, 0, "memory", 1), 0)
        return min(
            candidates,
            key=lambda a: max(a.memory.start - address, address - a.memory.end),
            default=nowhere,
        )

    def strides_behind(self, tensor: Argument, offset: int) -> str:
        """Another argument of the tensor's shape whose strides lead to `offset`; empty where none do."""
        alike = ((name, a.strides) for name, a in self.arguments.items() if a.shape == tensor.shape)
        others = ((name, strides) for name, strides in alike if strides != tensor.strides)
        return next((name for name, strides in others if leads_to(offset, tensor.shape, strides)), "")


def leads_to(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether an index of the shape, taken from the largest stride down, ends at `offset` elements."""
    for stride, size in sorted(zip(strides, shape, strict=True), reverse=True):
        if stride:
            offset -= min(offset // stride, size - 1) * stride
    return offset == 0


def merge_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Ascending ranges, none empty, in which those that overlap are one; those that only touch stay apart."""
    joined: list[Range] = []
    for r in sorted((r for r in ranges if r.start < r.end), key=lambda r: (r.start, -r.end)):
        if joined and r.start < joined[-1].end:
            joined[-1] = replace(joined[-1], end=max(joined[-1].end, r.end))
        else:
            joined.append(r)
    return joined


def lies_in(ranges: list[Range], address: int) -> bool:
    """Whether one of the ascending, disjoint `ranges` holds `address`."""
    index = bisect_right(ranges, address, key=lambda r: r.start) - 1
    return index >= 0 and address < ranges[index].end


def signed_difference(difference: int) -> int:
    """A difference of 64-bit addresses, which wraps around, as the nearer of the two ways to go."""
    return (difference + (1 << 63)) % (1 << 64) - (1 << 63)
