"""How a kernel is launched: its arguments become Triton values, and its programs run one after the other.

A GPU promises no order, so no result may depend on it. Programs that may wait for one another take turns, as
they run at the same time there: each in a thread of its own, only one at a time, which gives way after each
turn of a `while` loop.
"""

import ast
import functools
import inspect
import itertools
import math
import operator
import random
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream
from triton.runtime.errors import InterpreterError
from triton.runtime.jit import mangle_type

from ..integrity.kernel_source import sources
from .formats import storage

Order = Literal["forward", "reversed", "shuffled"]
Program = tuple[int, int, int]


def programs_of(grid: Program, function: Callable[..., Any], order: Order) -> Iterable[Program]:
    """The programs of a grid, each once. Those that may wait for one another start forward in any case: a GPU
    runs as many as it has room for, and what is there starts in this order."""
    x, y, z = map(range, grid)
    forward = itertools.product(x, y, z)
    if order == "forward" or may_wait(function):
        return forward
    programs = list(forward)
    if order == "reversed":
        return programs[::-1]
    random.Random(len(programs)).shuffle(programs)
    return programs


@functools.cache
def may_wait(function: Callable[..., Any]) -> bool:
    """Whether a kernel, or a jit function that it calls, loops until something happens, or is not known."""
    return any(
        source is None or any(isinstance(node, ast.While) for node in source.nodes)
        for source in sources(function)
    )


class NotInterpreted(InterpreterError):  # type: ignore[misc]
    """A kernel or its wrapper asks for what compiled kernels alone have."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the interpreter has no {what}")


RESIDENT = 64
"""Programs that run at the same time, at most: as on a GPU, the others start as these end."""
Resume = Callable[[], None]
"""Makes a program that gave way the running one again."""


class LaunchEnded(BaseException):
    """Raised in a program whose launch is over because another one failed."""


class RunningProgram:
    """A program in a thread, which runs while `run_on` waits for it."""

    def __init__(self, run: Callable[[], None], pause: Callable[[], Resume]) -> None:
        self._pause = pause
        self._resume: Resume | None = None
        self._turns: SimpleQueue[bool] = SimpleQueue()
        """Whether to run on; else to end."""
        self._stops: SimpleQueue[bool | BaseException] = SimpleQueue()
        """Whether it is done, after each turn, or what it has raised."""
        threading.Thread(target=self._run, args=(run,), daemon=True).start()

    def run_on(self) -> bool:
        """Let it run until it gives way or ends; whether it has ended. Raises what it raises."""
        if self._resume is not None:
            self._resume()
        self._turns.put(True)
        stop = self._stops.get()
        if isinstance(stop, BaseException):
            raise stop
        return stop

    def end(self) -> None:
        """End it where it gave way."""
        self._turns.put(False)
        self._stops.get()

    def give_way(self) -> None:
        """To be called in its thread."""
        self._resume = self._pause()
        self._stops.put(False)
        self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        if not self._turns.get():
            raise LaunchEnded

    def _run(self, run: Callable[[], None]) -> None:
        THREAD.program = self
        stop: bool | BaseException = True
        try:
            self._wait_for_turn()
            with np.errstate(all="ignore"):
                run()
        except LaunchEnded:
            pass
        except BaseException as error:
            stop = error
        self._stops.put(stop)


THREAD = threading.local()


def give_way() -> None:
    """Let the launch's other programs run, where they take turns; to be called after a turn of a loop."""
    program: RunningProgram | None = getattr(THREAD, "program", None)
    if program is not None:
        program.give_way()


def take_turns(programs: Iterable[Callable[[], None]], pause: Callable[[], Resume]) -> None:
    """Run the programs of a launch. Raises what the first of them raises that fails.

    `pause` is called in a program that gives way.
    """
    unstarted, waiting = iter(programs), deque[RunningProgram]()
    try:
        while True:
            run = next(unstarted, None) if len(waiting) < RESIDENT else None
            if run is None and not waiting:
                return
            program = waiting.popleft() if run is None else RunningProgram(run, pause)
            if not program.run_on():
                waiting.append(program)
    finally:
        for program in waiting:
            program.end()


convert_upstream = upstream._implicit_cvt


def argument(value: Any) -> Any:
    """A kernel's argument as the compiler types it: float32 for a float, int1 for a bool."""
    if not isinstance(value, bool | int | float):
        return convert_upstream(value)
    dtype = tl.int1 if isinstance(value, bool) else tl.str_to_ty(mangle_type(value), None)
    data = np.array([value]).astype(storage(dtype))
    return tl.tensor(upstream.TensorHandle(data, dtype), dtype)


MANY_PROGRAMS = 1000
"""A launch of so many may take longer than it is given, though each of them ends."""
PROGRESS_SECONDS = 1.0


class GridExecutor(upstream.GridExecutor):  # type: ignore[misc]
    """Runs every program of one launch."""

    order: Order = "forward"
    note_progress: Callable[[int, int], None] = staticmethod(lambda ended, programs: None)
    """Called now and then while many programs run one after the other, with how many have ended, and of how
    many."""

    def __call__(self, *args_dev: Any, **kwargs: Any) -> None:
        named = {name: value for name, value in kwargs.items() if name in self.arg_names}
        args_hst, named_hst = self._init_args_hst(args_dev, named)
        for hook in self.pre_run_hooks:
            hook(*args_hst, **named_hst)
        bound = inspect.getcallargs(self.fn, *args_hst, **named_hst)
        grid = launch_grid(self.grid, bound)
        with np.errstate(all="ignore"):
            tensors = {n: v if n in self.constexprs else argument(v) for n, v in bound.items()}
            self.run_programs(grid, tensors)
        self._restore_args_dev(args_dev, args_hst, named, named_hst)

    def run_programs(self, grid: tuple[int, int, int], tensors: dict[str, Any]) -> None:
        builder = upstream.interpreter_builder
        builder.set_grid_dim(*grid)

        def run(program: Program) -> None:
            builder.set_grid_idx(*program)
            call_interpreted(self.fn, (), tensors)

        programs = (partial(run, program) for program in programs_of(grid, self.fn, self.order))
        if math.prod(grid) > 1 and may_wait(self.fn):
            take_turns(programs, builder.pause)
        else:
            self.run_one_by_one(programs, math.prod(grid))

    def run_one_by_one(self, programs: Iterable[Callable[[], None]], count: int) -> None:
        last = time.monotonic()
        for ended, run_program in enumerate(programs, 1):
            run_program()
            if count >= MANY_PROGRAMS and time.monotonic() - last > PROGRESS_SECONDS:
                last = time.monotonic()
                self.note_progress(ended, count)


def launch_grid(grid: Any, bound: dict[str, Any]) -> tuple[int, int, int]:
    """The grid's three extents. Raises InterpreterError for a fourth, TypeError for one not an integer."""
    extents = tuple(map(operator.index, grid(bound) if callable(grid) else grid))
    if len(extents) > 3:
        raise InterpreterError(f"a grid has at most 3 dimensions, this one has {len(extents)}")
    x, y, z = (*extents, 1, 1, 1)[:3]
    return x, y, z


def call_interpreted(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Interpreted code's result; whatever it raises becomes one InterpreterError that keeps the cause."""
    try:
        return function(*args, **kwargs)
    except InterpreterError:
        raise
    except Exception as error:
        raise InterpreterError(repr(error)) from error


BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "pow",
    "gt", "ge", "lt", "le", "eq", "ne",
)  # fmt: skip


def yielding(name: str) -> Any:
    """`CONSTANT * x` of a global tl.constexpr is a tensor, as in the compiler, not a constant of one."""
    plain, original = getattr(operator, f"__{name}__"), getattr(tl.constexpr, f"__{name}__")

    def operate(self: Any, other: Any) -> Any:
        return plain(self.value, other) if isinstance(other, tl.tensor) else original(self, other)

    return operate


CHECKING = tl.load.__code__
"""Of what `builtin` wraps Triton's functions in, which checks that they are given the semantic."""


def patch_directly(place: Any, name: str, member: Any, _builder: Any, scope: Any) -> None:
    """As upstream's: the function with the interpreter's semantic, in one call for three."""
    function = member.__wrapped__ if getattr(member, "__code__", None) is CHECKING else member

    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = upstream.interpreter_semantic
        return function(*args, **kwargs)

    scope.set_attr(place, name, call)


class WarmedUp:
    """What `kernel.warmup` gives: the figures by which wrappers choose a grid are those of a small kernel."""

    n_regs, n_spills, n_max_threads = 32, 0, 1024
    metadata = types.SimpleNamespace(shared=1024, num_warps=4, num_ctas=1)

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def _init_handles(self) -> None:
        """A compiled kernel is loaded by it."""

    def __getitem__(self, grid: Any) -> Any:
        return self._kernel[grid]

    def __getattr__(self, name: str) -> Any:
        raise NotInterpreted(f"`{name}` of a compiled kernel")


def warming_up(run: Any) -> Any:
    """`InterpretedFunction.run` that gives something in a warm-up too."""

    @functools.wraps(run)
    def run_or_warm_up(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        return WarmedUp(kernel) if warmup else run(kernel, *args, grid=grid, warmup=warmup, **kwargs)

    return run_or_warm_up


def refuse_assembly(*_: Any, **__: Any) -> None:
    raise NotInterpreted("inline assembly")


def install() -> None:
    upstream._patch_attr = patch_directly
    for name in BINARY:
        setattr(tl.constexpr, f"__{name}__", yielding(name))
    # Upstream points triton.language at the interpreter again for each launch and each device function call,
    # which costs more than most kernels. In this process every kernel is interpreted: once is enough.
    upstream._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    upstream._patch_lang = lambda function: upstream._LangPatchScope()
    upstream._implicit_cvt = argument
    upstream.GridExecutor = GridExecutor

    def call_device_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call_interpreted(self.rewrite(), args, kwargs)

    upstream.InterpretedFunction.__call__ = call_device_function
    upstream.InterpretedFunction.run = warming_up(upstream.InterpretedFunction.run)
    upstream.InterpreterBuilder.create_inline_asm = refuse_assembly
