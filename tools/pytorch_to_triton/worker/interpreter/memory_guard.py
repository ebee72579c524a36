"""A guard over kernels: every load, store and atomic stays inside the tensors that it may touch, and programs
of one launch do not race. Violations are reported with their source line and prevented."""

import contextlib
import functools
import inspect
import linecache
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter as upstream
from triton.tools.tensor_descriptor import TensorDescriptor

from ..integrity.kernel_source import orders_by_atomics
from .arithmetic import Builder
from .bounds import Argument, Bounds, Range, signed
from .formats import Array, encoded
from .launching import GridExecutor
from .races import SITES, Races, StoragePart, differing, in_memory, program_of
from .strides import SECTOR_BYTES, step_of

KEPT_FAULTS = 20
ORIGIN = "origin"
"""The attribute of a pointer's handle that names the launch argument it was computed from."""
VERBS = {"load": "reads", "store": "writes", "atomic": "updates"}
MACHINERY = tuple(str(Path(file).parent) + os.sep for file in (triton.__file__, __file__))


@dataclass(frozen=True)
class AccessSite:
    """A line of a kernel, and the argument whose elements it touches where that is known."""

    file: str
    line: int
    origin: str | None


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

    def __init__(
        self, guard: "MemoryGuard", function: Any, grid: tuple[int, int, int], bounds: Bounds
    ) -> None:
        self.guard = guard
        self.kernel = function.__name__
        self.definition = (function.__code__.co_filename, function.__code__.co_firstlineno)
        self.grid = grid
        self.bounds = bounds
        self.races = Races(bounds.spans)
        self.ordered_by_atomics = orders_by_atomics(function)
        self.several = grid[0] * grid[1] * grid[2] > 1
        self.program = 0
        self.sites: dict[AccessSite, int] = {}

    def touch(self, kind: str, pointers: Any, mask: Any) -> Touch:
        """Sort an operation's active lanes by the storage that they touch; what touches none is noted."""
        addresses = np.asarray(pointers.data)
        active = np.broadcast_to(np.asarray(mask.data, dtype=np.bool_), addresses.shape)
        lanes = addresses.ravel() if active.all() else addresses[active]
        if lanes.size == 0:
            return Touch((), 0, active, None)
        width = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        owner = self.owner(pointers, addresses)
        held = self.bounds.holder(int(lanes.min()), int(lanes.max()) + width)
        if held >= 0:
            return Touch((StoragePart(held, lanes, width),), owner, active, None)
        holders = self.bounds.holders(lanes, width)
        parts = tuple(
            StoragePart(int(h), lanes[holders == h], width) for h in np.unique(holders).tolist() if h >= 0
        )
        outside = holders < 0
        if not outside.any():
            return Touch(parts, owner, active, None)
        self.note_outside(kind, (owner, parts[0].storage if parts else -1), lanes[outside])
        wild = np.zeros(addresses.shape, dtype=np.bool_)
        wild[active] = outside
        return Touch(parts, owner, active, wild)

    def owner(self, pointers: Any, addresses: Array) -> int:
        """The running program and the kernel's line, as races.py numbers them."""
        site = AccessSite(*self.line(), pointers.attr.get(ORIGIN))
        if site not in self.sites:
            self.note_step(site, addresses)
        number = self.sites.setdefault(site, len(self.sites))
        return (self.program + 1) * (SITES + 1) + min(number, SITES)

    def line(self) -> tuple[str, int]:
        """File and line of the innermost frame that is a kernel's."""
        frame = sys._getframe(1)
        while is_machinery(frame.f_code.co_filename):
            if frame.f_back is None:
                return self.definition
            frame = frame.f_back
        return frame.f_code.co_filename, frame.f_lineno

    def loaded(self, touch: Touch) -> None:
        if self.several:
            for part in touch.parts:
                self.races.loaded(part, touch.owner)

    def storing(self, touch: Touch, values: Any) -> None:
        self.writing(touch)
        if self.several:
            for part in touch.parts:
                self.races.storing(part, touch.owner, values.data.dtype)

    def writing(self, touch: Touch) -> None:
        """Keep which storages kernels write to."""
        self.guard.stored.update(self.bounds.spans[part.storage][0] for part in touch.parts)

    def stored(self, touch: Touch, pointers: Any, values: Any) -> None:
        """Lanes that do not find what they just stored were overwritten by others of the same store."""
        if sum(len(part.addresses) for part in touch.parts) < 2:
            return
        lanes = pointers.data[touch.kept]
        meant = np.broadcast_to(values.data, pointers.data.shape)[touch.kept]
        lost = differing(in_memory(lanes, meant.dtype), meant)
        if lost.any():
            description = "lanes of one store write different values to this element"
            self.note(
                "race",
                touch.owner,
                (int(lanes[lost][0]), touch.parts[0].storage),
                (int(lost.sum()), description),
            )

    def atomic(self) -> None:
        self.guard.launches_with_atomics.add(self.kernel)
        if self.ordered_by_atomics:
            self.races.order()

    def finish(self) -> None:
        for conflict in self.races.finish():
            description = conflict.description.format(
                program=self.program_text(conflict.owner), other=self.program_text(conflict.other)
            )
            place = (conflict.address, conflict.storage)
            self.note("race", conflict.owner, place, (conflict.count, description))

    def note_step(self, site: AccessSite, addresses: Array) -> None:
        """The first block of a line shows how its lanes lie."""
        step = step_of(addresses)
        if step is not None and step >= SECTOR_BYTES and site.origin is not None:
            place = {"kernel": self.kernel, "file": site.file, "line": site.line, "tensor": site.origin}
            self.guard.strided[site] = {**place, "step_bytes": step, "lanes": addresses.size}

    def note_outside(self, kind: str, where: tuple[int, int], lanes: Array) -> None:
        owner, neighbour = where
        fault_kind = "load_outside" if kind == "load" else "store_outside"
        self.note(fault_kind, owner, (int(lanes[0]), neighbour), (len(lanes), VERBS[kind]))

    def note(self, kind: str, owner: int, place: tuple[int, int], event: tuple[int, str]) -> None:
        """`place` is an address and a range near it or -1; `event` a count and what happened."""
        address, neighbour = place
        count, description = event
        site = list(self.sites)[owner & SITES]
        tensor = self.bounds.tensor_at(address, site.origin, neighbour)
        offset = signed(address - tensor.first) // tensor.itemsize
        elements = max(0, tensor.end - tensor.first) // tensor.itemsize
        outside = kind != "race"
        self.guard.add(
            {
                "kind": kind,
                "kernel": self.kernel,
                "file": site.file,
                "line": site.line,
                "source": linecache.getline(site.file, site.line).strip(),
                "tensor": tensor.name,
                "offset": offset,
                "elements": elements,
                "count": count,
                "program": list(self.position(owner)),
                "detail": f"{description} element {offset} of {elements}" if outside else description,
                "strides_of": self.bounds.strides_behind(tensor, offset) if outside else "",
            }
        )

    def position(self, owner: int) -> tuple[int, int, int]:
        rest, z = divmod(program_of(owner) - 1, self.grid[2])
        x, y = divmod(rest, self.grid[1])
        return x, y, z

    def program_text(self, owner: int) -> str:
        """`3`, or `(3, 1, 0)` in a grid of several dimensions."""
        position = self.position(owner)
        return str(position if self.grid[1] * self.grid[2] > 1 else position[0])


class MemoryGuard:
    """Records what kernels must not do to memory, while it watches.

    `known` gives, once a launch, every range that kernels may touch beside the launch's own tensors.
    """

    def __init__(self, known: Callable[[], Iterable[Range]]) -> None:
        self.known = known
        self.clear()

    def clear(self) -> None:
        self.faults: list[dict[str, Any]] = []
        """At most KEPT_FAULTS, one for each kind, kernel, line and tensor, with `count` of its lanes:

        kind "load_outside", "store_outside" or "race"; kernel; file, line and source; tensor; offset, in
        elements from the tensor's first; elements, from its first to its storage's end; program [x, y, z];
        detail, a clause for a reader.
        """
        self.launches_with_atomics: set[str] = set()
        self.stored: set[int] = set()
        """Addresses at which the storages begin that kernels have written to."""
        self.by_place: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.strided: dict[AccessSite, dict[str, Any]] = {}
        """Blocks whose lanes lie a sector or more apart: kernel, file, line, tensor, step_bytes, lanes."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch every kernel launched inside."""
        builder, executor = upstream.interpreter_builder, upstream.GridExecutor
        usual, other = type(builder), vars(builder).get("guard")
        # Triton 3.6 has handed this one object to every function of triton.language: it is changed in place.
        builder.__class__, builder.guard = GuardedBuilder, self
        upstream.GridExecutor = GuardedExecutor
        try:
            yield
        finally:
            builder.__class__, builder.guard = usual, other
            upstream.GridExecutor = executor

    def has_stored(self, tensor: Any) -> bool:
        """Whether a kernel has written to the tensor's storage."""
        return tensor.untyped_storage().data_ptr() in self.stored

    def add(self, fault: dict[str, Any]) -> None:
        place = tuple(fault[key] for key in ("kind", "kernel", "file", "line", "tensor"))
        if place in self.by_place:
            self.by_place[place]["count"] += fault["count"]
        elif len(self.faults) < KEPT_FAULTS:
            self.by_place[place] = fault
            self.faults.append(fault)


class GuardedBuilder(Builder):
    """The interpreter's operations, with lanes masked off that would leave the memory they may touch."""

    guard: MemoryGuard
    launch: GuardedLaunch

    def set_grid_idx(self, x: int, y: int, z: int) -> None:
        super().set_grid_idx(x, y, z)
        self.launch.program = (x * self.grid_dim[1] + y) * self.grid_dim[2] + z

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *hints: Any, **named: Any) -> Any:
        touch = self.launch.touch("load", ptrs, mask)
        self.launch.loaded(touch)
        if touch.wild is None:
            return super().create_masked_load(ptrs, mask, other, *hints, **named)
        return poisoned(
            super().create_masked_load(ptrs, lane_mask(touch.kept), other, *hints, **named), touch.wild
        )

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *hints: Any, **named: Any) -> Any:
        touch = self.launch.touch("store", ptrs, mask)
        self.launch.storing(touch, value)
        super().create_masked_store(
            ptrs, value, mask if touch.wild is None else lane_mask(touch.kept), *hints, **named
        )
        self.launch.stored(touch, ptrs, value)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        touch = self.launch.touch("atomic", ptr, mask)
        self.launch.writing(touch)
        self.launch.atomic()
        if touch.wild is None:
            return super().create_atomic_rmw(rmwOp, ptr, val, mask, sem, scope)
        return poisoned(
            super().create_atomic_rmw(rmwOp, ptr, val, lane_mask(touch.kept), sem, scope), touch.wild
        )

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        touch = self.launch.touch("atomic", ptr, lane_mask(np.ones(ptr.data.shape, np.bool_)))
        self.launch.atomic()
        if touch.wild is None:
            return super().create_atomic_cas(ptr, cmp, val, sem, scope)
        inside = ~touch.wild
        found = np.zeros(ptr.data.shape, cmp.data.dtype)
        if inside.any():
            operands = (
                upstream.TensorHandle(np.broadcast_to(h.data, inside.shape)[inside], h.dtype)
                for h in (ptr, cmp, val)
            )
            found[inside] = super().create_atomic_cas(*operands, sem, scope).data
        return poisoned(upstream.TensorHandle(found, cmp.dtype.scalar), touch.wild)

    def create_addptr(self, ptr: Any, offset: Any) -> Any:
        return descended(super().create_addptr(ptr, offset), ptr)

    def create_splat(self, ret_ty: Any, arg: Any) -> Any:
        return descended(super().create_splat(ret_ty, arg), arg)

    def create_broadcast(self, arg: Any, shape: Any) -> Any:
        return descended(super().create_broadcast(arg, shape), arg)

    def create_expand_dims(self, arg: Any, axis: int) -> Any:
        return descended(super().create_expand_dims(arg, axis), arg)

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        return descended(super().create_bitcast(src, dst_type), src)


class GuardedExecutor(GridExecutor):
    """A launch under the memory guard."""

    def _init_args_hst(self, args_dev: Any, kwargs: Any) -> Any:
        self.on_host = super()._init_args_hst(args_dev, kwargs)
        return self.on_host

    def run_programs(self, grid: tuple[int, int, int], tensors: dict[str, Any]) -> None:
        args, named = self.on_host
        bound = inspect.getcallargs(self.fn, *args, **named)
        given = [a for name, value in bound.items() for a in arguments_in(value, name)]
        for name, value in tensors.items():
            mark_origin(value, name)
        builder = upstream.interpreter_builder
        builder.launch = GuardedLaunch(builder.guard, self.fn, grid, Bounds(builder.guard.known(), given))
        try:
            super().run_programs(grid, tensors)
        finally:
            builder.launch.finish()


def arguments_in(value: Any, name: str) -> Iterator[Argument]:
    """The tensors in one launch argument; `name[1]` for the second of a tuple."""
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from arguments_in(item, f"{name}[{i}]")
    elif isinstance(value, TensorDescriptor):
        yield from arguments_in(value.base, name)
    elif hasattr(value, "data_ptr"):
        tensor = upstream._unwrap_tensor(value)
        stored = tensor.untyped_storage()
        place = (stored.data_ptr(), stored.data_ptr() + stored.nbytes(), tensor.element_size())
        yield Argument(name, tensor.data_ptr(), *place, tuple(tensor.shape), tensor.stride())


def mark_origin(value: Any, name: str) -> None:
    """Mark the pointers in one converted launch argument with its name, as `arguments_in` writes it."""
    if isinstance(value, tuple | tl.tuple):
        for i, item in enumerate(value):
            mark_origin(item, f"{name}[{i}]")
    elif isinstance(value, tl.tensor) and value.dtype.is_ptr():
        value.handle.attr[ORIGIN] = name


def descended(handle: Any, parent: Any) -> Any:
    """`handle`, computed from `parent`, with the same origin."""
    if ORIGIN in parent.attr:
        handle.attr[ORIGIN] = parent.attr[ORIGIN]
    return handle


def lane_mask(lanes: Array) -> Any:
    return upstream.TensorHandle(lanes, tl.int1)


def poisoned(handle: Any, wild: Array) -> Any:
    """`handle` with NaN, or a large odd integer, where nothing could be read."""
    dtype = handle.dtype.scalar
    if dtype.is_floating():
        handle.data[wild] = encoded(np.array([np.nan]), dtype)[0]
    elif handle.data.dtype == np.bool_:
        handle.data[wild] = True
    else:
        handle.data[wild] = np.iinfo(handle.data.dtype).max // 3 | 1
    return handle


@functools.cache
def is_machinery(file: str) -> bool:
    """Whether `file` is Triton's or this package's, not a kernel author's."""
    return file.startswith(MACHINERY)
