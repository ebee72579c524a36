"""What kernels' sources contain: Python that no compiler accepts, and used results of atomic operations."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
import triton
import triton.language as tl
from author import Author
from triton.language import atomic_add
from triton.language.extra import libdevice
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.interpreter import InterpretedFunction

from pytorch_to_triton.worker.integrity.kernel_source import orders_by_atomics, uses_atomics
from pytorch_to_triton.worker.integrity.operators import Launches, Operators
from pytorch_to_triton.worker.integrity.uncompilable import python_in

ROOT = Path(__file__).parents[3]
WIDTH = tl.constexpr(4)


class Pair(NamedTuple):
    first: Any
    second: Any


def halved(block: Any) -> Any:
    block.handle.data[...] /= 2
    return block


def same_dtype(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype)


same_dtype_at_compile_time = triton.constexpr_function(same_dtype)


@triton.constexpr_function
def doubled(size: int) -> int:
    return size * 2


@triton.jit
def added(one, other):
    return one + other


@triton.jit
def given_kernel(x_ptr, out_ptr, function: tl.constexpr):
    tl.store(out_ptr, function(tl.load(x_ptr)))


@triton.jit
def honest_kernel(x_ptr, out_ptr, n, ROUND: tl.constexpr = None, BLOCK: tl.constexpr = 4):
    """Everything that a compiler accepts."""
    tl.static_assert(BLOCK >= WIDTH, f"{BLOCK} is short")
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    pair = Pair(added(x, doubled(BLOCK)), float("inf"))
    if same_dtype_at_compile_time(x, pair.first):
        x = tl.maximum(pair.first, 0.0) + libdevice.exp(x) + tl.math.sqrt(tl.abs(x))
    for k in tl.static_range(2):
        x += min(k, 1) + max(k, 1) + tl.cdiv(n, BLOCK) + triton.cdiv(BLOCK, 2) + int(BLOCK)
    if ROUND is not None and isinstance(BLOCK, int) and len(x.shape) == 1:
        print("x", x)
    tl.store(out_ptr + i, x.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def needless_kernel(count_ptr):
    """atom.add would order nothing."""
    tl.atomic_add(count_ptr, 1)


@triton.jit
def imported_kernel(count_ptr):
    atomic_add(count_ptr, 1)


@triton.jit
def ticket_kernel(count_ptr):
    if tl.atomic_add(count_ptr, 1) == 3:
        tl.store(count_ptr, 0)


@triton.jit
def taken(count_ptr):
    return tl.atomic_cas(count_ptr, 0, 1)


@triton.jit
def lock_kernel(count_ptr):
    while taken(count_ptr) == 1:
        pass


def python_of(kernel: Any, last: object = 4) -> list[str]:
    """What the record of one launch of the kernel names."""
    x, out = torch.ones(8), torch.empty(8)
    with Operators() as operators, Launches(operators) as launches:
        kernel[(1,)](x, out, last)
    (launch,) = launches.launched
    names: list[str] = launch["python"]
    return names


USES = """
import numpy as np
import triton
import triton.language as tl

seen = []

def halved(block):
    block.handle.data[...] /= 2
    return block

halved_constexpr = tl.constexpr(halved)
halved_at_compile_time = triton.constexpr_function(halved)

@triton.jit
def halving(block):
    return halved(block)

@triton.jit
def kernel(x_ptr, out_ptr, n):
    x = tl.load(x_ptr + tl.arange(0, 4)) + 1
    tl.store(out_ptr + tl.arange(0, 4), x)
    USE
"""
PYTHON = {
    "halved(x)": "halved",
    "halving(x)": "halved",
    "halved_constexpr(x)": "halved_constexpr",
    "halved_at_compile_time(x)": "halved_at_compile_time",
    "seen.append(n)": "seen.append",
    "np.shape(x)": "np.shape",
    "x.handle.data.sort()": ".handle",
    "import math": "import math",
}
"""What a kernel does, and what of it is named."""


def python_in_a_kernel_is_named() -> None:
    for use, name in PYTHON.items():
        assert python_of(Author(USES.replace("USE", use)).load().kernel) == [name], use
    assert python_of(given_kernel, halved) == ["function"]


def what_the_compiler_accepts_is_not_named() -> None:
    assert python_of(honest_kernel) == []
    assert python_of(given_kernel, triton.jit(lambda_free)) == []


def lambda_free(block: Any) -> Any:
    return block + 1


def no_honest_kernel_uses_python() -> None:
    files = [*ROOT.glob("reference_kernels/*.py"), *ROOT.glob("tests/kernels/honest/*.py")]
    functions = [function for file in files for function in kernels_of(file)]
    assert len(functions) > 20
    for function in functions:
        assert python_in(function, {}) == set(), function


def kernels_of(file: Path) -> list[Callable[..., Any]]:
    """The functions behind the jit functions of a file, autotuned ones too."""
    functions = []
    for value in vars(Author(file.read_text()).load()).values():
        while isinstance(value, Autotuner | Heuristics):
            value = value.fn
        if isinstance(value, InterpretedFunction):
            functions.append(value.fn)
    return functions


def a_function_that_hides_itself_while_the_kernel_runs_is_named() -> None:
    source = """
import torch, triton
import triton.language as tl

def helper(t):
    globals()["helper"] = triton.jit(lambda t: t)
    return t

@triton.jit
def copying_kernel(x_ptr, out_ptr, n):
    tl.store(out_ptr, helper(tl.load(x_ptr)))
"""
    assert python_of(Author(source).load().copying_kernel) == ["helper"]


def python_in_a_kernel_without_a_source_is_named() -> None:
    names = {"tl": tl, "halved": halved, "Pair": Pair, "added": added}
    exec("def made_kernel(x_ptr, out_ptr, n): tl.store(out_ptr, halved(tl.load(x_ptr)))", names)
    exec("def fine_kernel(x_ptr, out_ptr, n): tl.store(out_ptr, added(tl.load(x_ptr), 1))", names)
    assert python_in(cast(Any, names["made_kernel"]), {}) == {"halved"}
    assert python_in(cast(Any, names["fine_kernel"]), {}) == set()


def an_atomic_operation_that_is_imported_by_name_is_seen() -> None:
    assert uses_atomics(imported_kernel.fn)
    assert not uses_atomics(honest_kernel.fn)


def a_result_of_an_atomic_operation_that_is_used_orders() -> None:
    assert not orders_by_atomics(needless_kernel.fn)
    assert not orders_by_atomics(honest_kernel.fn)
    assert orders_by_atomics(ticket_kernel.fn)
    assert orders_by_atomics(lock_kernel.fn)


def a_kernel_of_unknown_source_may_order() -> None:
    names: dict[str, Callable[..., Any]] = {}
    exec("def unknown(): pass", names)
    assert orders_by_atomics(names["unknown"])
