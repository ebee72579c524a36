"""Where the order of a launch's work is open, on a GPU, and its result depends on it.

Programs run in no order. Two may read an element that nobody writes, and may write the same value to one. A
race is an element that two programs leave with different values, or that one program reads and only another
writes, unless atomic operations order the two (happens_before.py). Threads of one program run in no order
either: what one has stored, another loads only behind a barrier.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton._C.libtriton import interpreter as native

from ..wire.observation import FaultKind
from .happens_before import (
    SITE_BITS,
    Array,
    HappensBefore,
    StoragePart,
    is_scalar,
    owner_of,
    phases_of,
    rank_of,
    site_of,
)
from .launching import Resume

LOGGED_LANES = 1 << 22
"""Addresses of loads kept before they are summed up by element: 32 MiB."""
FOLLOWED_ELEMENTS = 1 << 26
"""Storages of more elements are not followed; the arrays for this many take 1.9 GiB where all are touched."""
SAFE: Array = np.ones(1, dtype=np.bool_)
"""A load needs no barrier before a release: nobody goes on without what was loaded."""


@dataclass(frozen=True)
class Conflict:
    """`owner` did something to `count` elements, the first at `address`, that clashes with `other`."""

    owner: int
    storage: int
    """That the elements lie in; outside of all, one that other lanes touch, or -1."""
    address: int
    count: int
    description: str
    """What happened, with {program} for the owner's and {other} for the other program, {line} for the line of
    the other, and {weak} for that of an atomic operation that orders nothing."""
    other: int = 0
    kind: FaultKind = "race"


class Writers:
    """Who wrote each element of a storage last, in which lane, and which more than one program wrote."""

    def __init__(self, elements: int) -> None:
        self.last = np.zeros(elements, dtype=np.int64)
        self.lanes = np.zeros(elements, dtype=np.int32)
        self.shared = np.zeros(elements, dtype=np.bool_)


class Readers:
    """One program that read each element of a storage, and one other where there is one."""

    def __init__(self, elements: int) -> None:
        self.first = np.zeros(elements, dtype=np.int64)
        self.second = np.zeros(elements, dtype=np.int64)

    def take(self, cells: Array, owners: Array) -> None:
        fresh = self.first[cells] == 0
        self.first[cells[fresh]] = owners[fresh]
        further = rank_of(self.first[cells]) != rank_of(owners)
        self.second[cells[further]] = owners[further]


class Races:
    """Follows the loads and stores of one launch, of whose programs one runs at a time here."""

    def __init__(self, spans: list[tuple[int, int]], order: HappensBefore | None) -> None:
        self.spans = spans
        """Address of the first byte, and of the one after the last, of each storage."""
        self.order = order
        """None where no atomic operation orders programs."""
        self.follows_programs = True
        self.follows_threads = True
        self.started = 0
        """Programs of the launch."""
        self.rank, self.phase = 0, 0
        """Of the running program: its place in the order of starting, and how often its threads waited."""
        self.weak = 0
        """The owner of the last atomic operation that orders nothing between programs."""
        self.widths: dict[int, int] = {}
        self.loads: list[tuple[StoragePart, int]] = []
        self.logged = 0
        self.readers: dict[int, Readers] = {}
        self.writers: dict[int, Writers] = {}
        self.suspicions: list[tuple[StoragePart, Array, Array, int]] = []
        """Where an owner is about to write to what others left: the part, what lies there, they, it."""
        self.conflicts: list[Conflict] = []

    def start_program(self) -> None:
        self.started += 1
        self.rank, self.phase = self.started, 0
        if self.order is not None:
            self.order.start_program()

    def pause(self) -> Resume:
        """What makes the running program, which gives way to others now, the running one again."""
        rank, phase, seen = self.rank, self.phase, self.order.seen if self.order else None

        def resume() -> None:
            self.rank, self.phase = rank, phase
            if self.order is not None and seen is not None:
                self.order.seen = seen

        return resume

    def owner(self, site: int) -> int:
        return owner_of(self.rank, self.phase, site)

    def atomic(self, parts: Sequence[StoragePart], owner: int, semantic: Any) -> None:
        """An atomic operation; `semantic`: None where it orders nothing between programs."""
        if semantic is None:
            self.weak = owner
        elif self.order is not None:
            self.order.synchronize(parts, owner, semantic)

    def loaded(self, part: StoragePart, owner: int) -> None:
        if not self.follows(part):
            return
        if part.storage in self.writers and self.follows_threads:
            self.read_back(self.writers[part.storage], part, owner)
        if not self.follows_programs:
            return
        if self.order is not None:
            self.loaded_in_order(part, owner)
            return
        self.loads.append((part, owner))
        self.logged += len(part.addresses)
        if self.logged > LOGGED_LANES:
            self.sum_up_loads()

    def read_back(self, writers: Writers, part: StoragePart, owner: int) -> None:
        """Elements that other lanes of this program have stored since its threads last waited."""
        cells = self.cells(part)
        last = writers.last[cells]
        fresh = phases_of(last) == phases_of(owner)
        if fresh.any():
            moved = fresh & (writers.lanes[cells] != part.lanes)
            description = "reads in other lanes what line {line} stored, with no barrier between"
            self.add(part, owner, (last, moved), description, kind="missing_barrier")

    def loaded_in_order(self, part: StoragePart, owner: int) -> None:
        """A load where atomic operations order programs."""
        cells = self.cells(part)
        if part.storage in self.writers:
            writers = self.writers[part.storage]
            last = writers.last[cells]
            unseen = self.unseen(last, is_scalar(writers.lanes[cells])) & ~writers.shared[cells]
            if unseen.any():
                why = self.why(int(last[unseen][0]))
                what = f"reads what program {{other}} stored in line {{line}}, {why}"
                self.add(part, owner, (last, unseen), what)
        readers = self.readers_of(part.storage)
        unseen = self.unseen(readers.first[cells], SAFE)
        readers.first[cells[~unseen]] = owner
        readers.second[cells[unseen]] = owner

    def storing(self, part: StoragePart, owner: int, dtype: np.dtype[Any]) -> None:
        """To be called before the store, whose values have `dtype`, takes place."""
        if not self.follows(part):
            return
        self.resolve_suspicions(owner)
        if part.storage not in self.writers:
            self.writers[part.storage] = Writers(self.elements(part.storage))
        writers = self.writers[part.storage]
        cells = self.cells(part)
        last = writers.last[cells]
        if self.follows_programs and last.any():
            foreign = self.unseen(last, is_scalar(writers.lanes[cells]))
            if foreign.any():
                writers.shared[cells[foreign]] = True
                contested = StoragePart(part.storage, part.addresses[foreign], part.width, part.inside)
                held = in_memory(contested.addresses, dtype)
                self.suspicions.append((contested, held, last[foreign], owner))
        if self.order is not None and part.storage in self.readers:
            self.overwriting(self.readers[part.storage], part, owner)
        writers.last[cells] = owner
        writers.lanes[cells] = part.lanes

    def overwriting(self, readers: Readers, part: StoragePart, owner: int) -> None:
        """A store to what others read, where atomic operations order programs."""
        cells = self.cells(part)
        for earlier in (readers.first[cells], readers.second[cells]):
            unseen = self.unseen(earlier, SAFE)
            if unseen.any():
                why = self.why(int(earlier[unseen][0]))
                what = f"writes what program {{other}} read in line {{line}}, {why}"
                self.add(part, owner, (earlier, unseen), what)

    def unseen(self, earlier: Array, alone: Array) -> Array:
        """Where `earlier` are owners of other programs that nothing orders before the running one; `alone`:
        where a single thread did what they did."""
        foreign: Array = (earlier != 0) & (rank_of(earlier) != self.rank)
        if self.order is not None and foreign.any():
            foreign &= ~self.order.orders(earlier, alone)
        return foreign

    def why(self, earlier: int) -> str:
        """Why nothing orders what an owner of another program did before the running one."""
        assert self.order is not None
        if self.order.lacks_barrier(earlier):
            return "and no barrier stands between that and the atomic operation which releases it"
        relaxed = "a relaxed atomic operation (line {weak}) " if self.weak else "a relaxed atomic operation "
        if self.order.is_released(earlier):
            return f"and does not acquire in between: {relaxed}or a volatile load is no acquire"
        return f"which that program does not release afterwards: {relaxed}is no release"

    def add(
        self,
        part: StoragePart,
        owner: int,
        others: tuple[Array, Array],
        description: str,
        kind: FaultKind = "race",
    ) -> None:
        """Add a conflict with `others`, an owner a lane and the lanes that count, unless there is none."""
        other, lanes = others
        if lanes.any():
            first, count = int(np.argmax(lanes)), int(lanes.sum())
            at, clash = int(part.addresses[first]), int(other[first])
            self.conflicts.append(Conflict(owner, part.storage, at, count, description, clash, kind))

    def resolve_suspicions(self, owner: int) -> None:
        """Once another program runs: whether the last one left what it found where others had written."""
        if not self.suspicions or rank_of(self.suspicions[0][-1]) == rank_of(owner):
            return
        for part, held, others, suspect in self.suspicions:
            changed = differences(in_memory(part.addresses, held.dtype), held)
            description = "programs {other} and {program} write different values"
            self.add(part, suspect, (others, changed), description)
        self.suspicions = []

    def finish(self) -> list[Conflict]:
        """All conflicts, when the last program has run."""
        self.resolve_suspicions(0)
        if self.order is None:
            self.loads = [load for load in self.loads if load[0].storage in self.writers]
            self.sum_up_loads()
            for storage in self.writers.keys() & self.readers.keys():
                if self.comparable(storage):
                    self.conflicts += self.reads_of_others(storage)
        return [conflict for conflict in self.conflicts if self.comparable(conflict.storage)]

    def reads_of_others(self, storage: int) -> list[Conflict]:
        """Elements that one program wrote and another read, a conflict for each pair of lines."""
        writers, readers = self.writers[storage], self.readers[storage]
        cells = np.flatnonzero((writers.last != 0) & ~writers.shared)
        writer, first = writers.last[cells], readers.first[cells]
        reader = np.where(rank_of(first) == rank_of(writer), readers.second[cells], first)
        clash = reader != 0
        cells, writer, reader = cells[clash], writer[clash], reader[clash]
        later = reader > writer
        lines = site_of(reader) << SITE_BITS | site_of(writer)
        _, at, counts = np.unique(lines << 1 | later, return_index=True, return_counts=True)
        read = "reads what program {other} wrote in the same launch"
        wrote = "writes what program {other} read in the same launch"
        addresses = self.spans[storage][0] + cells * self.widths[storage]
        return [
            Conflict(
                int(max(reader[i], writer[i])),
                storage,
                int(addresses[i]),
                int(count),
                read if later[i] else wrote,
                int(min(reader[i], writer[i])),
            )
            for i, count in zip(at, counts, strict=True)
        ]

    def sum_up_loads(self) -> None:
        """Turn the log of loads into which program read which element."""
        by_storage: dict[int, list[tuple[StoragePart, int]]] = {}
        for part, owner in self.loads:
            by_storage.setdefault(part.storage, []).append((part, owner))
        for storage, loads in by_storage.items():
            if not self.comparable(storage):
                continue
            cells = np.concatenate([self.cells(part) for part, _ in loads])
            lanes = [len(part.addresses) for part, _ in loads]
            self.readers_of(storage).take(cells, np.repeat([owner for _, owner in loads], lanes))
        self.loads, self.logged = [], 0

    def readers_of(self, storage: int) -> Readers:
        if storage not in self.readers:
            self.readers[storage] = Readers(self.elements(storage))
        return self.readers[storage]

    def follows(self, part: StoragePart) -> bool:
        """False for a large storage, and once one is touched in elements of several sizes: its width is 0."""
        if part.storage not in self.widths:
            start, end = self.spans[part.storage]
            self.widths[part.storage] = part.width if (end - start) // part.width < FOLLOWED_ELEMENTS else 0
        elif self.widths[part.storage] != part.width:
            self.widths[part.storage] = 0
        return self.comparable(part.storage)

    def comparable(self, storage: int) -> bool:
        return self.widths[storage] != 0

    def elements(self, storage: int) -> int:
        start, end = self.spans[storage]
        return (end - start) // self.widths[storage] + 1

    def cells(self, part: StoragePart) -> Array:
        """Each lane's element, counted from the storage's start: int64."""
        offset = part.addresses - np.uint64(self.spans[part.storage][0])
        return (offset >> np.uint64(part.width.bit_length() - 1)).view(np.int64)


def in_memory(addresses: Array, dtype: np.dtype[Any]) -> Array:
    everywhere = np.ones(addresses.shape, dtype=np.bool_)
    values: Array = native.load(addresses, everywhere, np.zeros(addresses.shape, dtype), dtype)
    return values


def differences(actual: Array, expected: Array) -> Array:
    """Where two arrays hold different values; all NaN are one value."""
    different: Array = actual != expected
    if different.any() and actual.dtype.kind == "f":
        different &= ~(np.isnan(actual) & np.isnan(expected))
    return different
