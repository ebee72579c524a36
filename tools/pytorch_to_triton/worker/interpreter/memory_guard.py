"""A guard over kernels: every load, store and atomic stays inside the tensors that it may touch, and programs
of one launch do not race. Violations are reported with their source line and prevented."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream
from triton.tools.tensor_descriptor import TensorDescriptor

from ..allocation import Range, range_of
from .arithmetic import Builder
from .bounds import Argument, Bounds
from .formats import Array, encode
from .guarded_launch import ORIGIN, FaultLog, GuardedLaunch
from .launching import GridExecutor, Order, Resume
from .promises import broken_promise

Launched = tuple[Any, ...]
"""A kernel and its arguments."""


class MemoryGuard(FaultLog):
    """Records what kernels must not do, while it watches.

    `ranges` gives, once a launch, every range that kernels may touch beside the launch's own tensors.
    """

    def __init__(self, ranges: Callable[[], Iterable[Range]], order: Order = "forward") -> None:
        super().__init__()
        self.ranges = ranges
        self.order = order
        self.settled: Launched | None = None
        """The last launch, where another run of it would leave all as it is."""
        self.spared: Launched | None = None

    def is_spared(self, launched: Launched) -> bool:
        """Whether this is the launch that need not be run again; it is asked about each in turn."""
        spared, self.spared = self.spared, None
        return spared is not None and all(now is then for now, then in zip(launched, spared, strict=True))

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


class GuardedBuilder(Builder):
    """The interpreter's operations, with lanes masked off that would leave the memory they may touch."""

    guard: MemoryGuard
    launch: GuardedLaunch

    def set_grid_idx(self, x: int, y: int, z: int) -> None:
        super().set_grid_idx(x, y, z)
        self.launch.start_program((x, y, z))

    def pause(self) -> Resume:
        resume, resume_races = super().pause(), self.launch.races.pause()

        def resume_both() -> None:
            resume()
            resume_races()

        return resume_both

    def create_barrier(self) -> None:
        self.launch.races.phase += 1

    def promise(self, name: str, subject: Any, values: Any) -> None:
        if why := broken_promise(name, subject, values):
            self.launch.broken(why)

    def create_assume(self, condition: Any) -> None:
        if not np.all(condition.data):
            self.launch.broken("assumes what does not hold")

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *hints: Any, **named: Any) -> Any:
        touch = self.launch.touch("load", ptrs, mask)
        self.launch.loaded(touch)
        kept = mask if touch.wild is None else lane_mask(touch.kept)
        loaded = super().create_masked_load(ptrs, kept, other, *hints, **named)
        # Without `other` Triton leaves open what masked lanes hold; a single lane's 0 looks like none.
        if other is None and touch.active.size > 1 and not touch.active.all():
            return poison(loaded, ~touch.kept)
        return loaded if touch.wild is None else poison(loaded, touch.wild)

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
        self.launch.atomic(touch, sem, scope)
        if touch.wild is None:
            return super().create_atomic_rmw(rmwOp, ptr, val, mask, sem, scope)
        return poison(
            super().create_atomic_rmw(rmwOp, ptr, val, lane_mask(touch.kept), sem, scope), touch.wild
        )

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        touch = self.launch.touch("atomic", ptr, lane_mask(np.ones(ptr.data.shape, np.bool_)))
        self.launch.writing(touch)
        self.launch.atomic(touch, sem, scope)
        if touch.wild is None:
            return super().create_atomic_cas(ptr, cmp, val, sem, scope)
        inside = ~touch.wild
        previous = np.zeros(ptr.data.shape, cmp.data.dtype)
        if inside.any():
            operands = (
                upstream.TensorHandle(np.broadcast_to(h.data, inside.shape)[inside], h.dtype)
                for h in (ptr, cmp, val)
            )
            previous[inside] = super().create_atomic_cas(*operands, sem, scope).data
        return poison(upstream.TensorHandle(previous, cmp.dtype.scalar), touch.wild)


def keeping_origin(operation: Callable[..., Any], parent: int) -> Callable[..., Any]:
    """The builder's operation, whose result has the origin of one of its arguments."""

    def create(self: Builder, *args: Any) -> Any:
        handle = operation(self, *args)
        if ORIGIN in args[parent].attr:
            handle.attr[ORIGIN] = args[parent].attr[ORIGIN]
        return handle

    return create


PARENTS = {"addptr": 0, "splat": 1, "broadcast": 0, "expand_dims": 0, "bitcast": 0}
"""Which argument has the pointers that the result is computed from."""
for name, parent in PARENTS.items():
    setattr(GuardedBuilder, f"create_{name}", keeping_origin(getattr(Builder, f"create_{name}"), parent))


class GuardedExecutor(GridExecutor):
    """A launch under the memory guard, on the tensors that it is given: all of them are a CPU's."""

    def _init_args_hst(self, args_dev: Any, kwargs: Any) -> Any:
        self.on_host = args_dev, kwargs
        return self.on_host

    def _restore_args_dev(self, *_: Any) -> None:
        """Nothing was copied."""

    def __call__(self, *args_dev: Any, **kwargs: Any) -> None:
        self.is_one_warp = kwargs.get("num_warps") == 1
        super().__call__(*args_dev, **kwargs)

    def run_programs(self, grid: tuple[int, int, int], tensors: dict[str, Any]) -> None:
        args, named = self.on_host
        bound = inspect.getcallargs(self.fn, *args, **named)
        arguments = [a for name, value in bound.items() for a in arguments_in(value, name)]
        for name, value in tensors.items():
            mark_origin(value, name)
        builder = upstream.interpreter_builder
        guard, launched = builder.guard, (self.fn, *bound.values())
        if guard.is_spared(launched):
            return
        self.order, guard.settled = guard.order, None
        builder.launch = GuardedLaunch(
            builder.guard, self.fn, grid, Bounds(builder.guard.ranges(), arguments)
        )
        # One warp's threads keep in step.
        builder.launch.races.follows_threads = not self.is_one_warp
        try:
            super().run_programs(grid, tensors)
        finally:
            builder.launch.finish()
        if builder.launch.is_settled:
            guard.settled = launched


def spare_repeat() -> None:
    """The next launch is not run where it is the last one again, which reads nothing that it writes.

    To be called where nothing else may happen between both.
    """
    builder = upstream.interpreter_builder
    if isinstance(builder, GuardedBuilder):
        builder.guard.spared = builder.guard.settled


def arguments_in(value: Any, name: str) -> Iterator[Argument]:
    """The tensors in one launch argument; `name[1]` for the second of a tuple."""
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            yield from arguments_in(item, f"{name}[{i}]")
    elif isinstance(value, TensorDescriptor):
        yield from arguments_in(value.base, name)
    elif hasattr(value, "data_ptr"):
        tensor = upstream._unwrap_tensor(value)
        memory = range_of(tensor, name, tensor.element_size())
        yield Argument(memory, tensor.data_ptr(), tuple(tensor.shape), tensor.stride())


def mark_origin(value: Any, name: str) -> None:
    """Mark the pointers in one converted launch argument with its name, as `arguments_in` writes it."""
    if isinstance(value, tuple | tl.tuple):
        for i, item in enumerate(value):
            mark_origin(item, f"{name}[{i}]")
    elif isinstance(value, tl.tensor) and value.dtype.is_ptr():
        value.handle.attr[ORIGIN] = name


def lane_mask(lanes: Array) -> Any:
    return upstream.TensorHandle(lanes, tl.int1)


def poison(handle: Any, wild: Array) -> Any:
    """`handle` with NaN, or a large odd integer, where nothing could be read."""
    dtype = handle.dtype.scalar
    if dtype.is_floating():
        handle.data[wild] = encode(np.array([np.nan]), dtype)[0]
    elif handle.data.dtype == np.bool_:
        handle.data[wild] = True
    else:
        handle.data[wild] = np.iinfo(handle.data.dtype).max // 3 | 1
    return handle
