"""Each exp(x - max(x)) of an x that is filled with a literal of small magnitude."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.analysis.extremes import is_masked_later
from pytorch_to_triton.audit.analysis.operations import Operation
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other={other})
    {steps}
    tl.store(out_ptr + i, e / tl.sum(e), mask=i < n)
"""
BAD = (_KERNEL.format(other="-1e4", steps="e = tl.exp(x - tl.max(x, axis=0))"),)
GOOD = (_KERNEL.format(other='-float("inf")', steps="e = tl.exp(x - tl.max(x))"),)

_WITHIN_SCORES = -10.0
"""Scores of many rows are below it."""
_LOW_ENOUGH = -5e4
"""float16 reaches down to -65504, and masks in it are filled with that."""


@kernel_rule("low", "numerical stability", BAD, GOOD)
def mask_value_not_low_enough(kernel: SourceKernel) -> Iterator[Fault]:
    """Masked scores are filled with a value that real scores may be smaller than.

    The fill takes part in the maximum and in the sum of a softmax. Where all scores of a row are below it,
    the masked lanes get all of the weight, and the others none.

    Fix: fill with -float("inf"), or with -1e30 where a whole row may be masked.
    """
    found = values(kernel)
    for call in found.operations:
        if call.name not in ("exp", "exp2") or not call.operands or is_masked_later(call.call, found):
            continue
        match found.bare(call.operands[0]):
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if "max" in found.made_by(right):
                fill = _fill(found, found.operation(found.bare(left)))
                value = None if fill is None else found.number(fill)
                if fill is not None and value is not None and _LOW_ENOUGH < value <= 0:
                    yield Fault(
                        fill,
                        f"Masked lanes are filled with {ast.unparse(fill)}: where the scores of a row are "
                        "below it, those lanes get the weight.",
                        'Fill with -float("inf").',
                        fix='-float("inf")',
                        severity="high" if value > _WITHIN_SCORES and _decides(found, left, right) else None,
                    )


def _fill(found: KernelValues, call: Operation | None) -> ast.expr | None:
    """What a masked load or tl.where gives the masked lanes."""
    if call and call.name == "load":
        return call.option(2, "other")
    return call.operands[2] if call and call.name == "where" and len(call.operands) == 3 else None


def _decides(found: KernelValues, filled: ast.expr, shift: ast.expr) -> bool:
    """Whether it is tl.where that fills the lanes, and the maximum is taken over them."""
    made = found.bare(filled)
    return found.is_a(made, "where") and made in found.origins(shift)
