"""Functions that would fix sizes, made to keep them symbolic while a target is traced.

`math.sqrt(x.shape[-1])` and `float(n)` would make torch.export fix the size at the traced one.
"""

import ast
import builtins
import importlib.util
import math
import operator
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any

import sympy
import torch
from torch import _meta_registrations
from torch._subclasses.fake_tensor import FakeTensor

from ..replacement import all_replaced
from .size_guards import TORCH
from .whole_pools import whole_pools

Function = Callable[..., Any]
SIZES = (torch.SymInt, torch.SymFloat)


def as_tensor(method: str) -> Function:
    """A function of a size as a tensor of one element, which torch.export follows."""
    return lambda size: getattr(torch.scalar_tensor(BUILTINS["float"](size)), method)()


AS_TENSORS = ("exp", "expm1", "log", "log1p", "log2", "sin", "cos", "tanh")
ROOT: dict[str, Function] = {"sqrt": torch.sym_sqrt}
MATH: dict[str, Function] = {**ROOT, **{name: as_tensor(name) for name in AS_TENSORS}}
BUILTINS: dict[str, Function] = {
    "float": torch.sym_float,
    "int": torch.sym_int,
    "len": lambda tensor: tensor.shape[0],
    "type": lambda tensor: torch.Tensor,
}
TAKEN = {"len": (torch.Tensor,), "type": (FakeTensor,)}
"""What is followed of others than sizes; where the code asks, a fake tensor is a tensor."""
DEFAULTS: dict[str, Any] = {"stride": (), "padding": 0, "dilation": 1, "ceil_mode": False}
"""Of torch.max_pool1d, in their order."""


def max_pool1d(x: torch.Tensor, kernel_size: Any, *others: Any, **named: Any) -> torch.Tensor:
    """torch.max_pool1d by torch.max_pool2d: its own shape function fixes the length at the traced one."""
    given = dict(zip(DEFAULTS, others, strict=False)) | named
    stride, padding, dilation, ceil_mode = ({**DEFAULTS, **given}[name] for name in DEFAULTS)
    rows = zip((1, 1, 0, 1), (kernel_size, stride or kernel_size, padding, dilation), strict=True)
    sides = [(row, *one) if isinstance(one, list | tuple) else (row, one) for row, one in rows]
    pooled: torch.Tensor = torch.ops.aten.max_pool2d(x.unsqueeze(-2), *sides, ceil_mode)
    return pooled.squeeze(-2)


def following(plain: Function, symbolic: Function, of: tuple[type, ...] = SIZES) -> Function:
    """`plain`, but `symbolic` for a single argument that is one `of` these."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], of) and not kwargs:
            return symbolic(args[0])
        return plain(*args, **kwargs)

    return function


def pools_stay_symbolic() -> AbstractContextManager[None]:
    """Inside, the lengths of pools are rounded down without asking whether there is a remainder.

    torch 2.11 asks, which makes the answer at the traced sizes a condition on all.
    """
    asks = hasattr(_meta_registrations, "div_rtn")
    return all_replaced([(_meta_registrations, "div_rtn", operator.floordiv)] if asks else [])


def sizes_stay_symbolic(
    contents: ModuleType, file: Path, functions: Mapping[str, Function] = MATH
) -> AbstractContextManager[None]:
    """Inside, these functions of `math`, `float`, `int`, `len` in the target's file, and pools, keep them,
    and `type` knows a tensor."""
    following_math = {
        getattr(math, name): following(getattr(math, name), new) for name, new in functions.items()
    }
    imported = [
        (contents, name, following_math[value])
        for name, value in vars(contents).items()
        if isinstance(value, BuiltinFunctionType) and value in following_math
    ]
    of_python = [
        (contents, name, following(getattr(builtins, name), BUILTINS[name], TAKEN.get(name, SIZES)))
        for name in only_called(file, BUILTINS) - vars(contents).keys()
    ]
    of_math = [(math, name, following_math[getattr(math, name)]) for name in functions]
    pools = [(torch, "max_pool1d", max_pool1d), *whole_pools()]
    return all_replaced([*pools, *of_math, *imported, *of_python])


def noting(name: str, called: list[str]) -> Function:
    """The function of MATH under this name; each call appends the name."""

    def call(size: Any) -> Any:
        called.append(name)
        return MATH[name](size)

    return call


NOT_THE_CALLERS = (TORCH, str(Path(__file__).parents[1]))
"""Where files lie that ask of sizes for themselves."""
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def answers_kept(answers: list[Any]) -> AbstractContextManager[None]:
    """Inside, what the caller's Python learns by comparing sizes is appended to the answers, as
    expressions that hold in this trace. torch keeps none of whether a size is 1: it never traces one."""

    def kept(compare: Function) -> Function:
        def compared(size: torch.SymInt, other: Any) -> Any:
            result = compare(size, other)
            if isinstance(result, torch.SymBool) and not asking_file().startswith(NOT_THE_CALLERS):
                answers.append(result.node.expr if result.node.hint else sympy.Not(result.node.expr))
            return result

        return compared

    return all_replaced([(torch.SymInt, name, kept(vars(torch.SymInt)[name])) for name in COMPARISONS])


def asking_file() -> str:
    """The file whose code compares."""
    return sys._getframe(2).f_code.co_filename


def only_called(file: Path, names: dict[str, Function]) -> set[str]:
    """Those names that the file uses for nothing but calls: not as a dtype, nor to ask for a type."""
    tree = ast.parse(importlib.util.decode_source(file.read_bytes()))
    annotations = [getattr(n, field, None) for n in ast.walk(tree) for field in ("annotation", "returns")]
    excused = {id(inner) for a in annotations if isinstance(a, ast.AST) for inner in ast.walk(a)}
    excused |= {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    other = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in excused}
    return set(names) - other
