"""What a running program is sure to see of the others: what they released before it acquired.

A release and an acquire are atomic operations on one place with these semantics; acq_rel, the default, has
both. A relaxed one, or one of scope "cta", orders nothing between programs. All threads must have stored a
block before one of them releases it: a barrier stands between.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from triton._C.libtriton import ir

from .owners import Array, phase_of, rank_of
from .storage_part import StoragePart

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
