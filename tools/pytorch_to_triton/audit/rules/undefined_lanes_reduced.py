"""Lanes that a load leaves undefined take part in a reduction, a product of matrices or a store.

A masked load without other= promises nothing for the lanes that it leaves out. They happen to be zero on
some GPUs and compilers, and what was in the register on others.

Fix: pass other= with the value that changes nothing, or mask with tl.where before the lanes are
combined.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.addresses import bounds
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.extremes import is_decisive
from pytorch_to_triton.audit.analysis.masked_lanes import (
    UNDEFINED,
    is_masked_along,
    is_never_negative,
    lanes,
)
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.analysis.size_guards import is_guarded
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel
from pytorch_to_triton.schema.finding import SEVERITIES, Severity

SEVERITY = "high"
SUSPECTED: Severity = "low"
SETTLED_BY = ("undefined_values",)
CATEGORY = "correctness"
_LOW, _HIGH = '-float("inf")', 'float("inf")'
_NEUTRAL = {"sum": "0.0", "max": _LOW, "argmax": _LOW, "min": _HIGH, "argmin": _HIGH}
BAD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr, tl.sum(x.to(tl.float32) * 2, axis=0))
""",
    """
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, K, B: tl.constexpr):
    i = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        mask = k + i < K
        a = tl.load(a_ptr + i[:, None] * K + (k + i)[None, :], mask=mask[None, :])
        b = tl.load(b_ptr + (k + i)[:, None] * B + i[None, :], mask=mask[:, None])
        acc += tl.dot(a, b)
    tl.store(out_ptr + i[:, None] * B + i[None, :], acc)
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        total += tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr, tl.sum(total))

def run(x, out):
    kernel[(1,)](x, out, x.numel(), B=256)
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(x, axis=0))
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr, tl.sum(tl.where(i < n, x, 0.0), axis=0))
    tl.store(out_ptr + i, x, mask=i < n)
""",
    # Rows beyond the end are not stored, and each row is reduced for itself.
    """
@triton.jit
def kernel(x_ptr, out_ptr, n_rows, B: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + rows[:, None] * D + tl.arange(0, D)[None, :], mask=rows[:, None] < n_rows)
    tl.store(out_ptr + rows, tl.sum(x, axis=1), mask=rows < n_rows)
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * 16 + tl.arange(0, 16), mask=row < n)
    tl.store(out_ptr + row, tl.sum(x), mask=row < n)
""",
)


@dataclass(frozen=True, eq=False)
class _Taken:
    """A load whose undefined lanes take part in something."""

    load: KernelAccess
    where: str
    """What takes them in, with its line."""
    neutral: str
    """The value that changes nothing there."""
    severity: Severity | None = None


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Masked loads without other= whose undefined lanes certainly reach a result, the weightiest of each."""
    found: set[ast.Call] = set()
    for taken in sorted(_taken_in(kernel), key=lambda one: SEVERITIES.index(one.severity or SUSPECTED)):
        if taken.load.call not in found:
            found.add(taken.load.call)
            yield Fault(
                taken.load.call,
                "Without other=, the lanes that the mask leaves out are undefined, and "
                f"{taken.where} takes them in.",
                f"Add other={taken.neutral}.",
                severity=taken.severity,
            )


def _taken_in(kernel: SourceKernel) -> Iterator[_Taken]:
    for called in values(kernel).operations:
        where = f"tl.{called.name} in line {called.call.lineno}"
        if called.name in _NEUTRAL and called.operands:
            axis = called.option(1, "axis")
            for load in _undefined(called.operands[0], axis, kernel):
                yield _Taken(load, where, _NEUTRAL[called.name], _severity(called, load, kernel))
        elif called.name == "dot" and len(called.operands) >= 2:
            for side, summed in ((0, 1), (1, 0)):
                for load in _undefined(called.operands[side], ast.Constant(summed), kernel):
                    yield _Taken(load, where, "0.0", _of_sum(load, kernel))
    for access in kernel.accesses:
        if (
            access.name == "store"
            and access.mask is None
            and access.value is not None
            and not access.call.keywords
        ):
            for load in _undefined(access.value, None, kernel):
                yield _Taken(load, f"the store without a mask in line {access.call.lineno}", "0.0")


def _severity(called: Operation, load: KernelAccess, kernel: SourceKernel) -> Severity | None:
    """Of a maximum or minimum: what usually stands in undefined lanes, zeros, decides it too."""
    if _NEUTRAL[called.name] == "0.0":
        return _of_sum(load, kernel)
    if is_never_negative(called.operands[0], kernel):
        return None
    return "high" if is_decisive(called.call, load, kernel) else None


def _of_sum(load: KernelAccess, kernel: SourceKernel) -> Severity | None:
    """Medium where a launch of the file may leave lanes out: zeros, which would do, are not promised."""
    sizes = {bound.size.id for bound in bounds(load.mask, kernel) if isinstance(bound.size, ast.Name)}
    given = [(launch, launch.given(kernel).get(name)) for launch in kernel.launches for name in sizes]
    is_open = any(value is not None and not is_guarded(value, launch, kernel) for launch, value in given)
    return "medium" if is_open and not is_trial(kernel.file) else None


def _undefined(value: ast.expr, axis: ast.expr | None, kernel: SourceKernel) -> Iterator[KernelAccess]:
    held = lanes(value, kernel)
    if held and held.hold == UNDEFINED and is_masked_along(held.load, axis, kernel):
        yield held.load
