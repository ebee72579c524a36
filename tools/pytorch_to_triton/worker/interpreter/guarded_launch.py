"""One run of a kernel over its grid, under the memory guard, and the log of what was seen of kernels."""

import functools
import linecache
import math
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import triton

from ..integrity.kernel_source import orders_by_atomics
from ..integrity.sandbox import looks_at_own_frame
from ..wire.observation import FaultKind, MemoryFault, Strided
from .bounds import Bounds, signed_difference
from .formats import Array
from .happens_before import FOLLOWED_PROGRAMS, HappensBefore, StoragePart, is_weak, rank_of, site_of
from .launching import Program
from .races import Conflict, Races, differences, in_memory

KEPT_FAULTS = 20


@dataclass(frozen=True)
class AccessSite:
    """A line of a kernel, and the argument whose elements it touches where that is known."""

    file: str
    line: int
    origin: str | None


class FaultLog:
    """What kernels did that they must not do to memory, and what else is known of them."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.by_place: dict[tuple[Any, ...], MemoryFault] = {}
        """At most KEPT_FAULTS, one for each kind, kernel, line and tensor, with the count of its lanes."""
        self.launches_with_atomics: set[str] = set()
        self.stored: set[int] = set()
        """Addresses at which the storages begin that kernels have written to."""
        self.strided: dict[AccessSite, Strided] = {}

    @property
    def faults(self) -> list[MemoryFault]:
        """In the order in which they were first seen."""
        return [*self.by_place.values()]

    def has_stored(self, tensor: Any) -> bool:
        """Whether a kernel has written to the tensor's storage."""
        return tensor.untyped_storage().data_ptr() in self.stored

    def add(self, fault: MemoryFault) -> None:
        place = (fault.kind, fault.kernel, fault.file, fault.line, fault.tensor)
        if earlier := self.by_place.get(place):
            self.by_place[place] = replace(earlier, count=earlier.count + fault.count)
        elif len(self.by_place) < KEPT_FAULTS:
            self.by_place[place] = fault


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


ORIGIN = "origin"
"""The attribute of a pointer's handle that names the launch argument it was computed from."""
VERBS = {"load": "reads", "store": "writes", "atomic": "updates"}
MACHINERY = tuple(str(Path(file).parent) + os.sep for file in (triton.__file__, __file__))


@dataclass(frozen=True)
class Touch:
    """What one operation touches: a part a storage, and `wild` lanes, a mask, that touch none."""

    parts: tuple[StoragePart, ...]
    owner: int
    active: Array
    wild: Array | None

    @property
    def kept(self) -> Array:
        """The mask of the lanes that the operation may run."""
        return self.active if self.wild is None else self.active & ~self.wild


class GuardedLaunch:
    """One run of a kernel over its grid."""

    def __init__(self, log: FaultLog, function: Any, grid: Program, bounds: Bounds) -> None:
        self.log = log
        self.kernel = function.__name__
        self.definition = (function.__code__.co_filename, function.__code__.co_firstlineno)
        self.grid = grid
        self.bounds = bounds
        programs = math.prod(grid)
        followed = programs <= FOLLOWED_PROGRAMS
        ordered = programs > 1 and orders_by_atomics(function)
        self.races = Races(bounds.spans, HappensBefore(programs) if ordered and followed else None)
        self.races.follows_programs = programs > 1 and (followed or not ordered)
        self.programs: list[Program] = []
        """Those that have started, in their order."""
        self.sites: dict[AccessSite, int] = {}
        self.read: set[int] = set()
        """The storages that it has loaded from ..."""
        self.written: set[int] = set()
        """... and stored to, by number."""

    @property
    def is_settled(self) -> bool:
        """Whether another run would leave all as it is: it reads nothing that it writes."""
        return self.read.isdisjoint(self.written)

    def start_program(self, program: Program) -> None:
        self.programs.append(program)
        self.races.start_program()

    def touch(self, kind: str, pointers: Any, mask: Any) -> Touch:
        """Sort an operation's active lanes by the storage that they touch; what touches none is noted."""
        addresses = np.asarray(pointers.data)
        active = np.asarray(mask.data, dtype=np.bool_)
        if active.shape != addresses.shape:
            active = np.broadcast_to(active, addresses.shape)
        lanes = addresses.ravel() if active.all() else addresses[active]
        if lanes.size == 0:
            return Touch((), 0, active, None)
        width = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        owner = self.owner(pointers, addresses)
        held = self.bounds.holder(int(lanes.min()), int(lanes.max()) + width)
        if held >= 0:
            return Touch((StoragePart(held, lanes, width, active),), owner, active, None)
        holders = self.bounds.holders(lanes, width)
        parts = tuple(
            StoragePart(h, lanes[holders == h], width, chosen_mask(active, holders == h))
            for h in np.unique(holders).tolist()
            if h >= 0
        )
        outside = holders < 0
        if not outside.any():
            return Touch(parts, owner, active, None)
        fault: FaultKind = "load_outside" if kind == "load" else "store_outside"
        near = parts[0].storage if parts else -1
        self.note(Conflict(owner, near, int(lanes[outside][0]), int(outside.sum()), VERBS[kind], kind=fault))
        return Touch(parts, owner, active, chosen_mask(active, outside))

    def owner(self, pointers: Any, addresses: Array) -> int:
        """The running program and the kernel's line, as happens_before.py numbers them."""
        site = AccessSite(*self.line(), pointers.attr.get(ORIGIN))
        if site not in self.sites:
            self.note_step(site, addresses)
        return self.owner_at(site)

    def owner_at(self, site: AccessSite) -> int:
        return self.races.owner(self.sites.setdefault(site, len(self.sites)))

    @looks_at_own_frame
    def line(self) -> tuple[str, int]:
        """File and line of the innermost frame that is a kernel's."""
        frame = sys._getframe()
        while is_machinery(frame.f_code.co_filename):
            if frame.f_back is None:
                return self.definition
            frame = frame.f_back
        return frame.f_code.co_filename, frame.f_lineno

    def loaded(self, touch: Touch) -> None:
        for part in touch.parts:
            self.read.add(part.storage)
            self.races.loaded(part, touch.owner)

    def storing(self, touch: Touch, values: Any) -> None:
        self.writing(touch)
        for part in touch.parts:
            self.races.storing(part, touch.owner, values.data.dtype)

    def writing(self, touch: Touch) -> None:
        """Keep which storages kernels write to."""
        for part in touch.parts:
            self.written.add(part.storage)
            self.log.stored.add(self.bounds.spans[part.storage][0])

    def stored(self, touch: Touch, pointers: Any, values: Any) -> None:
        """Lanes that do not find what they just stored were overwritten by others of the same store."""
        if sum(len(part.addresses) for part in touch.parts) < 2:
            return
        lanes = pointers.data[touch.kept]
        meant = np.broadcast_to(values.data, pointers.data.shape)[touch.kept]
        lost = differences(in_memory(lanes, meant.dtype), meant)
        if lost.any():
            description = "lanes of one store write different values to this element"
            at, count = int(lanes[lost][0]), int(lost.sum())
            self.note(Conflict(touch.owner, touch.parts[0].storage, at, count, description))

    def atomic(self, touch: Touch, semantic: Any, scope: Any) -> None:
        self.log.launches_with_atomics.add(self.kernel)
        self.read.update(part.storage for part in touch.parts)
        self.races.atomic(touch.parts, touch.owner, None if is_weak(semantic, scope) else semantic)
        if touch.active.size == 1:
            # The threads wait for its one result.
            self.races.phase += 1

    def finish(self) -> None:
        for conflict in self.races.finish():
            description = conflict.description.format(
                program=self.program_text(conflict.owner),
                other=self.program_text(conflict.other),
                line=self.site(conflict.other).line,
                weak=self.site(self.races.weak).line,
            )
            self.note(replace(conflict, description=description))

    def site(self, owner: int) -> AccessSite:
        sites = list(self.sites)
        return sites[site_of(owner)]

    def broken(self, promise: str) -> None:
        """The running program has broken a promise to the compiler."""
        owner = self.owner_at(AccessSite(*self.line(), None))
        self.add("false_promise", owner, tensor="", offset=0, elements=0, count=1, detail=promise)

    def note_step(self, site: AccessSite, addresses: Array) -> None:
        """The first block of a line shows how its lanes lie."""
        step = step_of(addresses)
        if step is not None and step >= SECTOR_BYTES and site.origin is not None:
            self.log.strided[site] = Strided(
                kernel=self.kernel,
                file=site.file,
                line=site.line,
                tensor=site.origin,
                step_bytes=step,
                lanes=addresses.size,
            )

    def note(self, conflict: Conflict) -> None:
        """Log what was done to elements of a tensor, or to places outside of it."""
        tensor = self.bounds.tensor_at(conflict.address, self.site(conflict.owner).origin, conflict.storage)
        memory = tensor.memory
        offset = signed_difference(conflict.address - tensor.first) // memory.itemsize
        elements = max(0, memory.end - tensor.first) // memory.itemsize
        outside = conflict.kind.endswith("_outside")
        self.add(
            conflict.kind,
            conflict.owner,
            tensor=memory.name,
            offset=offset,
            elements=elements,
            count=conflict.count,
            detail=conflict.description + f" element {offset} of {elements}" * outside,
            strides_of=self.bounds.strides_behind(tensor, offset) if outside else "",
        )

    def add(self, kind: FaultKind, owner: int, **about: Any) -> None:
        site = self.site(owner)
        source = linecache.getline(site.file, site.line).strip()
        place = {"kernel": self.kernel, "file": site.file, "line": site.line, "source": source}
        self.log.add(MemoryFault(kind=kind, program=self.position(owner), **place, **about))

    def position(self, owner: int) -> Program:
        return self.programs[rank_of(owner) - 1]

    def program_text(self, owner: int) -> str:
        """`3`, or `(3, 1, 0)` in a grid of several dimensions."""
        position = self.position(owner)
        return str(position if self.grid[1] * self.grid[2] > 1 else position[0])


def chosen_mask(active: Array, chosen: Array) -> Array:
    """The mask of those of the active lanes that are chosen."""
    mask = np.zeros(active.shape, dtype=np.bool_)
    mask[active] = chosen
    return mask


@functools.cache
def is_machinery(file: str) -> bool:
    """Whether `file` is Triton's or this package's, not a kernel author's."""
    return file.startswith(MACHINERY)
