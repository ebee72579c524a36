"""Who touched what, as numbers, and what a running program is sure to see of the others: what they released
before it acquired.

A release and an acquire are atomic operations on one place with these semantics; acq_rel, the default, has
both. A relaxed one, or one of scope "cta", orders nothing between programs. All threads must have stored a
block before one of them releases it: a barrier stands between.

An owner is an int64 that encodes who did something, when and where; 0 is nobody. It holds the program's rank
in the order in which programs run, from 1 on; the phase that it was in, which a barrier or an atomic
operation of its own ends; and the number of the source line.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from triton._C.libtriton import ir

Array = np.ndarray[Any, Any]

SITE_BITS = 16
SITES = (1 << SITE_BITS) - 1
PHASE_BITS = 16
PHASES = (1 << PHASE_BITS) - 1


def owner_of(rank: int, phase: int, site: int) -> int:
    """Phases and lines beyond the last number that fits share it."""
    return (rank << PHASE_BITS | min(phase, PHASES)) << SITE_BITS | min(site, SITES)


Owners = TypeVar("Owners", int, Array)
"""One, or an array of them, element by element."""


def rank_of(owner: Owners) -> Owners:
    return owner >> (SITE_BITS + PHASE_BITS)


def phase_of(owner: Owners) -> Owners:
    return owner >> SITE_BITS & PHASES


def phases_of(owner: Owners) -> Owners:
    """The program and its phase in one number."""
    return owner >> SITE_BITS


def site_of(owner: Owners) -> Owners:
    return owner & SITES


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


FOLLOWED_PROGRAMS = 4096
"""Launches of more programs are not followed: what each has released takes a number for every other one."""
ACQUIRING = (ir.MEM_SEMANTIC.ACQUIRE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE)
RELEASING = (ir.MEM_SEMANTIC.RELEASE, ir.MEM_SEMANTIC.ACQUIRE_RELEASE)


class HappensBefore:
    """Vector clocks of the programs of one launch, of which one runs at a time."""

    def __init__(self, programs: int) -> None:
        self.seen = np.zeros(programs + 1, dtype=np.int64)
        """Of each program, by rank: one more than the phase in which it last released to the running one."""
        self.last_release = np.zeros(programs + 1, dtype=np.int64)
        """Of each program, by rank: one more than the phase in which it last released anything."""
        self.released: dict[int, Array] = {}
        """What an acquire of each place makes seen."""

    def start_program(self) -> None:
        self.seen = np.zeros_like(self.seen)

    def synchronize(self, parts: Sequence[StoragePart], owner: int, semantic: Any) -> None:
        """An atomic operation on these elements. All that blocks release in one storage is taken together."""
        whole = [~part.storage for part in parts]
        places = [address for part in parts for address in part.addresses.tolist()]
        if semantic in ACQUIRING:
            for place in self.released.keys() & {*whole, *places}:
                np.maximum(self.seen, self.released[place], out=self.seen)
        if semantic in RELEASING:
            now = self.seen.copy()
            now[rank_of(owner)] = self.last_release[rank_of(owner)] = phase_of(owner) + 1
            for place in places if len(places) == 1 else whole:
                # Who acquires from one of several atomic operations on a place acquires from all before it.
                before = self.released.get(place)
                self.released[place] = now if before is None else np.maximum(now, before)

    def orders(self, earlier: Array, alone: Array) -> Array:
        """Whether the running program sees what was done by `earlier`, owners of other programs; `alone`:
        where a single thread did it, the one that releases."""
        ordered: Array = phase_of(earlier) + ~alone < self.seen[rank_of(earlier)]
        return ordered

    def is_released(self, earlier: int) -> bool:
        """Whether its program has released since, to whomever."""
        return bool(self.last_release[rank_of(earlier)] > phase_of(earlier))

    def lacks_barrier(self, earlier: int) -> bool:
        """Whether what the owner `earlier` did was released, but not by all threads that did it."""
        return bool(self.seen[rank_of(earlier)] == phase_of(earlier) + 1)


def is_weak(semantic: Any, scope: Any) -> bool:
    """Whether an atomic operation orders nothing between programs."""
    return bool(semantic == ir.MEM_SEMANTIC.RELAXED or scope == ir.MEM_SYNC_SCOPE.CTA)
