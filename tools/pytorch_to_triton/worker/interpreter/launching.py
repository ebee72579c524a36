"""How a kernel is launched: its arguments become Triton values, and its programs run one after the other, or
in turns."""

import inspect
import math
import operator
import types
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as upstream
from triton.runtime.errors import InterpreterError
from triton.runtime.jit import mangle_type

from .formats import storage
from .program_order import Program, may_wait, programs_of
from .turns import take_turns

convert_upstream = upstream._implicit_cvt


def argument(value: Any) -> Any:
    """A kernel's argument as the compiler types it: float32 for a float, int1 for a bool."""
    if not isinstance(value, bool | int | float):
        return convert_upstream(value)
    dtype = tl.int1 if isinstance(value, bool) else tl.str_to_ty(mangle_type(value), None)
    data = np.array([value]).astype(storage(dtype))
    return tl.tensor(upstream.TensorHandle(data, dtype), dtype)


class GridExecutor(upstream.GridExecutor):  # type: ignore[misc]
    """Runs every program of one launch."""

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

        programs = (partial(run, program) for program in self.programs(grid))
        if math.prod(grid) > 1 and may_wait(self.fn):
            take_turns(programs, builder.pause)
        else:
            for run_program in programs:
                run_program()

    def programs(self, grid: Program) -> Iterable[Program]:
        return programs_of(grid, self.fn, "forward")


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


def call_device_function(self: Any, *args: Any, **kwargs: Any) -> Any:
    return call_interpreted(self.rewrite(), args, kwargs)


def no_more_patches(function: Any) -> Any:
    return upstream._LangPatchScope()


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


def install() -> None:
    for name in BINARY:
        setattr(tl.constexpr, f"__{name}__", yielding(name))
    # Upstream points triton.language at the interpreter again for each launch and each device function call,
    # which costs more than most kernels. In this process every kernel is interpreted: once is enough.
    upstream._patch_lang(types.SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    upstream._patch_lang = no_more_patches
    upstream._implicit_cvt = argument
    upstream.GridExecutor = GridExecutor
    upstream.InterpretedFunction.__call__ = call_device_function
