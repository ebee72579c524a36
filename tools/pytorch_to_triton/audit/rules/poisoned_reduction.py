"""Lanes that a mask left out change the result of a reduction.

The lanes beyond the end take part in tl.sum, tl.max and tl.min, and in a maximum that a loop keeps with
tl.maximum. They must hold what changes nothing: 0 for a sum, -inf for a maximum, inf for a minimum.
Arithmetic turns a neutral 0 into something else. What padded_lanes_counted is sure of is left to it.

Instead, pass that value as other=, or put it in with tl.where(mask, x, value) right before the reduction.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.extremes import is_decisive
from pytorch_to_triton.audit.analysis.masked_lanes import (
    NOT_ZERO,
    Lanes,
    is_masked_along,
    is_never_negative,
    lanes,
)
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.analysis.padding import padded_sums
from pytorch_to_triton.audit.analysis.ranges import calls_of
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
SUSPECTED = "low"
SETTLED_BY = ("wrong_results", "unstable_results")
CATEGORY = "correctness"
_LOW, _HIGH = '-float("inf")', 'float("inf")'
_NEUTRAL = {"sum": "0.0", "max": _LOW, "argmax": _LOW, "min": _HIGH, "argmin": _HIGH}
_RUNNING = {"maximum": "max", "minimum": "min"}
"""What a loop keeps in an accumulator, by the reduction that it stands for."""
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
    d = x - tl.sum(x, axis=0) / n
    tl.store(out_ptr, tl.sum(d * d * d, axis=0) / n)
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * stride + i, i < n, 0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(1.0 - x, 0))
""",
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, W: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    best = tl.full((B,), -float("inf"), tl.float32)
    for k in tl.static_range(W):
        at = i + k
        x = tl.load(x_ptr + at, mask=(at < n) & (i < n), other=0.0)
        best = tl.maximum(best, x.to(tl.float32))
    tl.store(out_ptr + i, best, mask=i < n)
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
    # Each lane is masked in all steps or in none, and stored where it is in none.
    """
@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, B: tl.constexpr):
    cols = tl.program_id(0) * B + tl.arange(0, B)
    best = tl.full((B,), float("-inf"), tl.float32)
    for row in range(n_rows):
        best = tl.maximum(best, tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0))
    tl.store(out_ptr + cols, best, mask=cols < n_cols)
""",
    # It starts at zero, and is no less than zero.
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    best = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        best = tl.maximum(best, tl.load(x_ptr + i, mask=i < n, other=0.0))
    tl.store(out_ptr, tl.max(best))
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Reductions of blocks whose masked lanes certainly hold something that is not neutral."""
    found = values(kernel)
    certain = {one.call for one in padded_sums(found)}
    for called in found.operations:
        if called.call in certain or not called.operands:
            continue
        if called.name in _NEUTRAL:
            held = _reduced(called, kernel) or _passed(called, kernel)
        else:
            held = _kept(called, kernel) if called.name in _RUNNING else None
        if held:
            neutral = _NEUTRAL[_RUNNING.get(called.name, called.name)]
            yield Fault(
                called.call,
                f"{_told(held)} The lanes that the mask of the load in line {held.load.call.lineno} leaves "
                f"out take part in tl.{called.name} with it; {neutral} would change nothing.",
                f"Put {neutral} there: by other= of the load, or by tl.where(mask, ..., {neutral}) right "
                f"before tl.{called.name}.",
                severity="high" if neutral != "0.0" and is_decisive(called.call, held.load, kernel) else None,
            )


def _passed(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes of a block that another kernel passes to this function, which reduces it as it is."""
    block = values(kernel).bare(called.operands[0])
    held = values(kernel).definitions(block) if isinstance(block, ast.Name) else ()
    if kernel.is_launched or len(held) != 1 or not isinstance(held[0], ast.arg):
        return None
    name = held[0].arg
    for caller, call in calls_of(kernel):
        given = argument(call, kernel.parameters.index(name), name)
        found = lanes(given, caller.kernel) if given is not None else None
        if given is None or found is None or call in caller.selected:
            continue
        if _poisons(found, called.name, given, caller.kernel) and is_masked_along(
            found.load, called.option(1, "axis"), caller.kernel
        ):
            return found
    return None


def _reduced(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes that change what tl.sum and the like make of a block."""
    held = lanes(called.operands[0], kernel)
    if held is None or not _poisons(held, called.name, called.operands[0], kernel):
        return None
    return held if is_masked_along(held.load, called.option(1, "axis"), kernel) else None


def _kept(called: Operation, kernel: SourceKernel) -> Lanes | None:
    """The masked lanes that change a maximum which a loop keeps, where each step masks other lanes."""
    for kept, block in (called.operands[:2], called.operands[1::-1]):
        start = _start(kept, called, kernel)
        held = lanes(block, kernel) if start is not None else None
        if held is None or not _poisons(held, _RUNNING[called.name], block, kernel):
            continue
        if abs(start or 0.0) >= _LEAST and _differs_by_step(held, called, kernel):
            return held
    return None


def _start(kept: ast.expr, called: Operation, kernel: SourceKernel) -> float | None:
    """The number that a name holds before a loop updates it by the call; None where it is something else."""
    found = values(kernel)
    held = found.definitions(kept) if isinstance(kept, ast.Name) else ()
    starts = [one for one in held if one is not called.call]
    if len(starts) != 1 or len(held) != 2 or not isinstance(starts[0], ast.expr):
        return None
    made = found.operation(found.bare(starts[0]))
    value = made.option(1, "value") if made and made.name == "full" else starts[0]
    return found.number(value) if value is not None else None


def _differs_by_step(held: Lanes, called: Operation, kernel: SourceKernel) -> bool:
    """Whether the load's mask is made from what the loop around the call runs over."""
    loops = [loop for loop in kernel.flow.loops(called.call) if isinstance(loop, ast.For)][:1]
    origins = kernel.flow.origins(held.load.mask) if held.load.mask else frozenset()
    names = {node.id for node in origins if isinstance(node, ast.Name)}
    return any(isinstance(loop.target, ast.Name) and loop.target.id in names for loop in loops)


def _poisons(held: Lanes, reduction: str, block: ast.expr, kernel: SourceKernel) -> bool:
    match reduction, held.hold:
        case "sum", float(hold):
            return hold != 0
        case "sum", content:
            return content == NOT_ZERO
        case "max" | "argmax", float(hold):
            return hold > -_LEAST and not (hold == 0 and is_never_negative(block, kernel))
        case "min" | "argmin", float(hold):
            return hold < _LEAST
    return False


def _told(held: Lanes) -> str:
    if isinstance(held.hold, float):
        return f"Masked lanes hold {held.hold:g} here."
    assert isinstance(held.load.other, ast.expr)
    return f"Masked lanes, loaded as {ast.unparse(held.load.other)}, no longer hold 0 here."
