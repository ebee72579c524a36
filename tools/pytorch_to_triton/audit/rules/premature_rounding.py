"""A float32 result is rounded to float16 or bfloat16, and then computed with.

The cast drops 13 or 16 bits that the following steps still need, and float16 makes infinity of whatever is
65520 or more. The cast saves nothing: the result stays in registers.

Fix: keep float32 until the store, and cast there. What goes into tl.dot may be cast; it adds up in
float32.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.promotion import LOW_PRECISION
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "medium"
CATEGORY = "numerical stability"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    e = tl.exp(x.to(tl.float32))
    {steps}
    tl.store(out_ptr + i, y, mask=i < n)
"""
BAD = (
    _KERNEL.format(steps="h = e.to(tl.float16)\n    y = h / n"),
    _KERNEL.format(steps="h = e.to(tl.bfloat16)\n    y = h.to(tl.float32) * 2"),
    _KERNEL.format(steps="h = tl.cast(e, tl.float16)\n    y = h * x"),
)
GOOD = (
    _KERNEL.format(steps="y = (e * 2).to(tl.float16)"),
    _KERNEL.format(steps="h = e.to(tl.float16)\n    y = tl.dot(h, h)"),
    _KERNEL.format(steps="h = x.to(tl.float16)\n    y = h * 2"),
    # Split into a high and a low part, on purpose.
    _KERNEL.format(steps="h = e.to(tl.bfloat16)\n    y = (e - h.to(tl.float32)).to(tl.bfloat16) + h"),
    _KERNEL.format(steps="y = e.to(tl.bfloat16).to(tl.float32) + 1"),
    _KERNEL.format(steps="y = e.to(tl.float16)\n    y = tl.where(x > 0, y, 0.0)"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each cast of a float32 value that arithmetic uses; what only goes into tl.dot is left alone."""
    found = values(kernel)
    for node in kernel.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=cast) if dtype := _rounds(found, cast):
                use = _arithmetic_on(found, cast)
                if use is not None:
                    yield Fault(
                        cast,
                        f"{name} is rounded to {dtype} here, and {ast.unparse(use)} computes with it: the "
                        "digits that the cast drops are missing there.",
                        f"Keep {name} in float32, and cast where it is stored.",
                    )


def _rounds(found: KernelValues, value: ast.expr) -> str | None:
    """The dtype that float32 is cast to."""
    cast = found.operation(value)
    if cast is None or cast.name not in ("to", "cast") or not cast.operands:
        return None
    dtype = found.dtype(value)
    return dtype if dtype in LOW_PRECISION and found.dtype(cast.operands[0]) == "float32" else None


def _arithmetic_on(found: KernelValues, cast: ast.expr) -> ast.expr | None:
    """A product, quotient or sum of the rounded value; None where a difference takes the rounding."""
    uses = [node for node in found.expressions if isinstance(node, ast.BinOp) and _uses(found, node, cast)]
    if any(isinstance(use.op, ast.Sub) for use in uses):
        return None
    return next((use for use in uses if isinstance(use.op, ast.Mult | ast.Div | ast.Add)), None)


def _uses(found: KernelValues, use: ast.BinOp, cast: ast.expr) -> bool:
    """Whether one side is that value, perhaps cast up again."""
    origin = found.bare(cast)
    sides = (use.left, use.right)
    return any(cast in _chain(found, side) and found.bare(side) is origin for side in sides)


def _chain(found: KernelValues, value: ast.expr) -> Iterator[ast.expr]:
    """The value, and what it is cast from."""
    for _ in range(9):
        value = found.resolved(value)
        yield value
        cast = found.operation(value)
        if cast is None or cast.name not in ("to", "cast") or not cast.operands:
            return
        value = cast.operands[0]
