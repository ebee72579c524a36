"""A sum of masked data is divided by the block size, where the block is wider than the data.

The block is padded to a power of two, and the lanes beyond the end add nothing to the sum but count in the
divisor: the mean comes out too small, by 100/128 for 100 elements in a block of 128.

Fix: divide by the number of elements, tl.sum(x) / n.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.padding import Padding, is_padded_along, masked_load
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "high"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    {steps}
    tl.store(out_ptr + tl.program_id(0), y)
"""
_ROWS = """
@triton.jit
def kernel(x_ptr, out_ptr, rows, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=r[:, None] < rows, other=0.0)
    tl.store(out_ptr + r, tl.sum(x, axis=1) / C, mask=r < rows)
"""
BAD = (
    _KERNEL.format(steps="y = tl.sum(x, axis=-1) / B"),
    _KERNEL.format(steps="x = x.to(tl.float32)\n    total = tl.sum(x * x)\n    y = total / B"),
    _KERNEL.format(steps="y = tl.sum(x) * (1.0 / B)"),
    _ROWS.replace("mask=r[:, None] < rows", "mask=(r[:, None] < rows) & (c[None, :] < rows)"),
)
GOOD = (
    _KERNEL.format(steps="y = tl.sum(x) / n"),
    _KERNEL.format(steps="y = tl.sum(x) / B").replace("i < n", "i < B"),
    _ROWS,
    _KERNEL.format(steps="y = tl.sum(x) / B") + "\ndef run(x, out):\n    kernel[(4,)](x, out, 64, 64)\n",
    _KERNEL.format(steps="y = tl.sum(x) / B") + "\ndef run(x, out, n):\n    kernel[(4,)](x, out, n, B=n)\n",
    _KERNEL.format(steps="x = tl.where(x > 0, x, tl.sum(x) / n)\n    y = tl.sum(x + 1) / B"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each sum of a masked load, or of its products, that is divided by the width of the block."""
    found = values(kernel)
    for node in found.expressions:
        divided = _mean(found, node)
        padding = _padding(found, divided[0]) if divided else None
        if divided and padding and found.same(padding.width, divided[1]):
            width, end = ast.unparse(padding.width), ast.unparse(padding.end)
            yield Fault(
                node,
                f"The sum has at most {end} terms and is divided by {width}, the width of the block: the "
                f"mean is too small wherever {end} is less.",
                f"Divide by {end}, the number of elements that the mask lets through.",
            )


def _mean(found: KernelValues, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The sum and the divisor of sum / n and sum * (1 / n)."""
    if quotient := found.quotient(node):
        return quotient
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for total, factor in ((left, right), (right, left)):
                inverse = found.quotient(found.bare(factor))
                if inverse and found.number(inverse[0]) == 1:
                    return total, inverse[1]
    return None


def _padding(found: KernelValues, total: ast.expr) -> Padding | None:
    """The padding of what tl.sum adds up, where it lies along the axis of the sum."""
    bare = found.bare(total)
    reduction = found.operation(bare)
    if reduction is None or reduction.name != "sum" or not reduction.operands:
        return None
    loads = [masked_load(found, factor) for factor in _factors(found, reduction.operands[0])]
    found_in = [is_padded_along(found, load, reduction) for load in loads if load]
    return next((padding for padding in found_in if padding), None)


def _factors(found: KernelValues, value: ast.expr) -> list[ast.expr]:
    """x and y of x * y; of a masked load they are zero where it is."""
    value = found.bare(value)
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return [*_factors(found, left), *_factors(found, right)]
        case ast.BinOp(left=left, op=ast.Pow()):
            return _factors(found, left)
    return [value]
