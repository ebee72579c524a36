"""Where two programs of one launch conflict over an element: on a GPU they run in no order.

Two programs may read an element that nobody writes, and may write the same value to one. A race is an element
that two programs leave with different values, or that one program reads and only another writes.

An owner is an int64 that encodes who did something and where: the program's number plus one, then SITE_BITS
for the number of the source line. 0 is nobody.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from triton._C.libtriton import interpreter as native

Array = np.ndarray[Any, Any]

SITE_BITS = 16
SITES = (1 << SITE_BITS) - 1
LOGGED_LANES = 1 << 22
"""Addresses of loads kept before they are summed up by element: 32 MiB."""
FOLLOWED_ELEMENTS = 1 << 26
"""Storages of more elements are not followed; the arrays for this many take 1.6 GiB where all are touched."""


@dataclass(frozen=True)
class StoragePart:
    """The lanes of one operation that touch one storage."""

    storage: int
    addresses: Array
    """uint64 [lanes], each the first byte of an element."""
    width: int
    """Bytes of an element: a power of two."""


@dataclass(frozen=True)
class Conflict:
    """`owner` did something to `count` elements, the first at `address`, that clashes with `other`."""

    owner: int
    other: int
    storage: int
    address: int
    count: int
    description: str
    """What happened, with {program} for the owner's and {other} for the other program."""


@dataclass(frozen=True)
class Suspicion:
    """A program is about to write where others wrote: `held` is what they left."""

    part: StoragePart
    held: Array
    others: Array
    owner: int


class Writers:
    """Who wrote each element of a storage last, and which elements more than one program wrote."""

    def __init__(self, elements: int) -> None:
        self.last = np.zeros(elements, dtype=np.int64)
        self.shared = np.zeros(elements, dtype=np.bool_)


class Readers:
    """One program that read each element of a storage, and one other where there is one."""

    def __init__(self, elements: int) -> None:
        self.first = np.zeros(elements, dtype=np.int64)
        self.second = np.zeros(elements, dtype=np.int64)

    def take(self, cells: Array, owners: Array) -> None:
        fresh = self.first[cells] == 0
        self.first[cells[fresh]] = owners[fresh]
        further = program_of(self.first[cells]) != program_of(owners)
        self.second[cells[further]] = owners[further]


class Races:
    """Follows the loads and stores of one launch of several programs, which run one after the other here."""

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self.spans = spans
        """Address of the first byte, and of the one after the last, of each storage."""
        self.ordered = False
        """Atomics were used, by which programs can wait for one another: nothing is reported any more."""
        self.widths: dict[int, int] = {}
        self.loads: list[tuple[StoragePart, int]] = []
        self.logged = 0
        self.readers: dict[int, Readers] = {}
        self.writers: dict[int, Writers] = {}
        self.suspicions: list[Suspicion] = []
        self.conflicts: list[Conflict] = []

    def order(self) -> None:
        """An atomic operation ran."""
        self.ordered = True
        self.loads, self.suspicions, self.conflicts = [], [], []
        self.writers, self.readers = {}, {}

    def loaded(self, part: StoragePart, owner: int) -> None:
        if self.ordered or not self.follows(part):
            return
        self.loads.append((part, owner))
        self.logged += len(part.addresses)
        if self.logged > LOGGED_LANES:
            self.sum_up_loads()

    def storing(self, part: StoragePart, owner: int, dtype: np.dtype[Any]) -> None:
        """To be called before the store, whose values have `dtype`, takes place."""
        if self.ordered or not self.follows(part):
            return
        self.resolve_suspicions(owner)
        if part.storage not in self.writers:
            self.writers[part.storage] = Writers(self.elements(part.storage))
        writers = self.writers[part.storage]
        cells = self.cells(part)
        last = writers.last[cells]
        if last.any():
            foreign = (last != 0) & (program_of(last) != program_of(owner))
            if foreign.any():
                writers.shared[cells[foreign]] = True
                contested = StoragePart(part.storage, part.addresses[foreign], part.width)
                held = in_memory(contested.addresses, dtype)
                self.suspicions.append(Suspicion(contested, held, last[foreign], owner))
        writers.last[cells] = owner

    def resolve_suspicions(self, owner: int) -> None:
        """Once another program runs: whether the last one left what it found where others had written."""
        if not self.suspicions or program_of(self.suspicions[0].owner) == program_of(owner):
            return
        for suspicion in self.suspicions:
            addresses = suspicion.part.addresses
            changed = differing(in_memory(addresses, suspicion.held.dtype), suspicion.held)
            if changed.any() and self.comparable(suspicion.part.storage):
                self.conflicts.append(
                    Conflict(
                        suspicion.owner,
                        int(suspicion.others[changed][0]),
                        suspicion.part.storage,
                        int(addresses[changed][0]),
                        int(changed.sum()),
                        "programs {other} and {program} write different values",
                    )
                )
        self.suspicions = []

    def finish(self) -> list[Conflict]:
        """All conflicts, when the last program has run."""
        self.resolve_suspicions(0)
        self.loads = [load for load in self.loads if load[0].storage in self.writers]
        self.sum_up_loads()
        for storage in self.writers.keys() & self.readers.keys():
            if self.comparable(storage):
                self.conflicts += self.reads_of_others(storage)
        return self.conflicts

    def reads_of_others(self, storage: int) -> list[Conflict]:
        """Elements that one program wrote and another read, a conflict for each pair of lines."""
        writers, readers = self.writers[storage], self.readers[storage]
        cells = np.flatnonzero((writers.last != 0) & ~writers.shared)
        writer, first = writers.last[cells], readers.first[cells]
        reader = np.where(program_of(first) == program_of(writer), readers.second[cells], first)
        clash = reader != 0
        cells, writer, reader = cells[clash], writer[clash], reader[clash]
        later = reader > writer
        lines = (reader & SITES) << SITE_BITS | (writer & SITES)
        _, at, counts = np.unique(lines << 1 | later, return_index=True, return_counts=True)
        return [
            self.read_of_other(storage, int(cells[i]), (int(reader[i]), int(writer[i])), int(count))
            for i, count in zip(at, counts, strict=True)
        ]

    def read_of_other(self, storage: int, cell: int, owners: tuple[int, int], count: int) -> Conflict:
        reader, writer = owners
        address = self.spans[storage][0] + cell * self.widths[storage]
        if reader > writer:
            description = "reads what program {other} wrote in the same launch"
            return Conflict(reader, writer, storage, address, count, description)
        description = "writes what program {other} read in the same launch"
        return Conflict(writer, reader, storage, address, count, description)

    def sum_up_loads(self) -> None:
        """Turn the log of loads into which program read which element."""
        by_storage: dict[int, list[tuple[StoragePart, int]]] = {}
        for part, owner in self.loads:
            by_storage.setdefault(part.storage, []).append((part, owner))
        for storage, loads in by_storage.items():
            if not self.comparable(storage):
                continue
            if storage not in self.readers:
                self.readers[storage] = Readers(self.elements(storage))
            cells = np.concatenate([self.cells(part) for part, _ in loads])
            lanes = [len(part.addresses) for part, _ in loads]
            self.readers[storage].take(cells, np.repeat([owner for _, owner in loads], lanes))
        self.loads, self.logged = [], 0

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


def program_of(owner: Any) -> Any:
    """The program's number plus one; of an array, element by element."""
    return owner >> SITE_BITS


def in_memory(addresses: Array, dtype: np.dtype[Any]) -> Array:
    """What lies at `addresses` now."""
    everywhere = np.ones(addresses.shape, dtype=np.bool_)
    found: Array = native.load(addresses, everywhere, np.zeros(addresses.shape, dtype), dtype)
    return found


def differing(found: Array, expected: Array) -> Array:
    """Where two arrays hold different values; all NaN are one value."""
    different: Array = found != expected
    if different.any() and found.dtype.kind == "f":
        different &= ~(np.isnan(found) & np.isnan(expected))
    return different
