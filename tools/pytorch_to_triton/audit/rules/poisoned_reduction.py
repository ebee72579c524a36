"""Lanes that a mask left out change the result of a reduction.

The lanes beyond the end take part in tl.sum, tl.max and tl.min. They must hold what changes nothing: 0 for
a sum, -inf for a maximum, inf for a minimum. Subtracting a mean turns a neutral 0 into something else.

Instead, pass that value as other=, or put it in with tl.where(mask, x, value) right before the reduction.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.arithmetic import values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.masked_lanes import NOT_ZERO, Lanes, is_masked_along, is_never_negative, lanes
from pytorch_to_triton.audit.operations import Operation
from pytorch_to_triton.audit.source import Kernel

SEVERITY = "critical"
SUSPECTED = "low"
SETTLED_BY = ("wrong_results", "unstable_results")
CATEGORY = "correctness"
_LOW, _HIGH = '-float("inf")', 'float("inf")'
_NEUTRAL = {"sum": "0.0", "max": _LOW, "argmax": _LOW, "min": _HIGH, "argmin": _HIGH}
_LEAST = 1000.0
"""What stands for infinity in many kernels is at least this."""
BAD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out_ptr, tl.max(x, axis=0))
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    mean = tl.sum(x, axis=0) / n
    centred = x - mean
    tl.store(out_ptr, tl.sum(centred * centred, axis=0) / n)
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * stride + i, i < n, 0.0)
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + tl.program_id(0), tl.sum(e, 0))
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)[:, None]
    cols = tl.arange(0, B)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=-float("inf"))
    tl.store(out_ptr + rows, tl.sum(x, axis=1, keep_dims=True), mask=rows < n_rows)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + i, e / tl.sum(e, axis=0), mask=i < n)
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    centred = tl.where(mask, x - tl.sum(x) / n, 0.0)
    tl.store(out_ptr, tl.sum(centred * centred) + tl.sum(x * x))
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.max(tl.abs(x)) + tl.max(x * x))
    x = tl.load(x_ptr + i, mask=i < n, other=-1e9)
    tl.store(out_ptr + 1, tl.max(x))
""",
    # Rows beyond the end are not stored, and each row is reduced for itself.
    """
@triton.jit
def kernel(x_ptr, out_ptr, n_rows, B: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.arange(0, D)
    mask = (rows < n_rows)[:, None]
    x = tl.load(x_ptr + rows[:, None] * D + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rows, tl.max(x, axis=1), mask=rows < n_rows)
""",
    # What a row of a matrix sums up to is a block, and masked like the other.
    """
@triton.jit
def kernel(a_ptr, b_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    b = tl.load(b_ptr + i, mask=i < n, other=0.0)
    a = tl.load(a_ptr + i[:, None] * n + i[None, :], mask=(i < n)[:, None] & (i < n)[None, :], other=0.0)
    rest = b - tl.sum(a * b[None, :], axis=1)
    tl.store(out_ptr, tl.sum(rest * rest))
""",
    """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum((x - tl.sum(x) / n) * w))
""",
)


def check(kernel: Kernel) -> Iterator[Fault]:
    """Reductions of blocks whose masked lanes certainly hold something that is not neutral."""
    for called in values(kernel).operations:
        if called.name not in _NEUTRAL or not called.operands:
            continue
        held = lanes(called.operands[0], kernel)
        if (
            held
            and _poisons(held, called, kernel)
            and is_masked_along(held.load, called.option(1, "axis"), kernel)
        ):
            name, neutral = called.name, _NEUTRAL[called.name]
            yield Fault(
                called.call,
                f"{_told(held)} The lanes that the mask of the load in line {held.load.call.lineno} leaves "
                f"out take part in tl.{name} with it; {neutral} would change nothing.",
                f"Put {neutral} there: by other= of the load, or by tl.where(mask, ..., {neutral}) right "
                f"before tl.{name}.",
            )


def _poisons(held: Lanes, called: Operation, kernel: Kernel) -> bool:
    match called.name, held.hold:
        case "sum", float(hold):
            return hold != 0
        case "sum", content:
            return content == NOT_ZERO
        case "max" | "argmax", float(hold):
            return hold > -_LEAST and not (hold == 0 and is_never_negative(called.operands[0], kernel))
        case "min" | "argmin", float(hold):
            return hold < _LEAST
    return False


def _told(held: Lanes) -> str:
    if isinstance(held.hold, float):
        return f"Masked lanes hold {held.hold:g} here."
    assert isinstance(held.load.other, ast.expr)
    return f"Masked lanes, loaded as {ast.unparse(held.load.other)}, no longer hold 0 here."
