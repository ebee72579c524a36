"""Each tl.atomic_add of a value that is a float."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.promotion import FLOATS
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule, remark_check
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    {steps}
"""
BAD = (_KERNEL.format(steps="tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i).to(tl.float32)))"),)
GOOD = (
    _KERNEL.format(
        steps="x = tl.load(x_ptr + i, mask=i < n, other=0)\n    tl.atomic_add(out_ptr, tl.sum(x))"
    ),
)


_FILE = """
INPUTS = {"x": "%s[N]"}
DIMS = {"N": [64]}

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    %s

def run(x):
    out = torch.zeros(64, dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, BLOCK=64)
    return out
"""
BAD_COMPILED = (_FILE % ("float32", "tl.atomic_add(out_ptr, tl.sum(x))"),)
GOOD_COMPILED = (
    _FILE % ("int32", "tl.atomic_add(out_ptr, tl.sum(x))"),
    _FILE % ("float32", "tl.atomic_max(out_ptr, tl.max(x))"),
)
_FIX = "Where runs must agree, store one partial sum a program and add those in a second kernel."


_COMPILED = remark_check(
    "float_atomics",
    "{kernel} adds floats by atomics, whose order, and so the last digits, differ from run to run.",
    _FIX,
    BAD_COMPILED,
    GOOD_COMPILED,
)


@kernel_rule("info", "numerical stability", BAD, GOOD, also=_COMPILED)
def float_atomics(kernel: SourceKernel) -> Iterator[Fault]:
    """Atomics add floats, in whatever order the programs arrive.

    Rounding depends on the order: two runs on the same input differ in their last digits.

    Fix: where runs must agree, store one partial sum a program, and add those in a second kernel or with
    torch.sum.
    """
    found = values(kernel)
    for access in kernel.accesses:
        if access.name == "atomic_add" and access.value and _is_float(found, access.value):
            where = f"{access.pointer} adds up" if access.pointer else "This adds up"
            yield Fault(
                access.call,
                f"{where} floats in the order in which programs arrive: runs differ in their last digits.",
                _FIX,
            )


def _is_float(found: KernelValues, value: ast.expr) -> bool:
    return found.dtype(value) in FLOATS or any(_fills_with_float(found, term) for term in found.terms(value))


def _fills_with_float(found: KernelValues, term: ast.AST) -> bool:
    """A load whose other value is written as a float."""
    load = found.operation(term)
    other = load.option(2, "other") if load and load.name == "load" else None
    return isinstance(other, ast.Constant) and isinstance(other.value, float)
