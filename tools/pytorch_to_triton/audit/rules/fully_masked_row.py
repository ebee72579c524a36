"""Each exp(x - m) of an x that a loaded mask sets to -inf, where nothing looks after m."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, mask_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    keep = tl.load(mask_ptr + i, mask=i < n, other=0)
    {steps}
    tl.store(out_ptr + i, e / tl.sum(e), mask=i < n)
"""
BAD = (
    _KERNEL.format(steps='x = tl.where(keep != 0, x, float("-inf"))\n    e = tl.exp(x - tl.max(x, axis=0))'),
)
GOOD = (
    _KERNEL.format(
        steps='x = tl.where(keep != 0, x, -float("inf"))\n    m = tl.max(x)\n'
        '    e = tl.exp(x - tl.where(m == -float("inf"), 0.0, m))'
    ),
)


@kernel_rule("info", "numerical stability", BAD, GOOD)
def fully_masked_row(kernel: SourceKernel) -> Iterator[Fault]:
    """A row of scores may be masked as a whole, and its softmax is then NaN.

    Where the mask is loaded, all of a row may be -inf: its maximum is -inf as well, and -inf - -inf is NaN,
    which every result of the row becomes.

    Fix: use zero in place of a maximum of -inf, tl.where(m == -float("inf"), 0.0, m), or mask with a finite
    value such as -1e30.
    """
    found = values(kernel)
    for call in found.operations:
        if call.name not in ("exp", "exp2") or not call.operands or call.call in found.selected:
            continue
        match found.bare(call.operands[0]):
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if mask := _loaded_mask(found, left):
                if "max" in found.made_by(right) and not _is_looked_after(found, right):
                    yield Fault(
                        call.call,
                        f"Where {ast.unparse(mask)} holds nowhere in a row, "
                        f"{ast.unparse(call.operands[0])} is -inf - -inf = NaN.",
                        'Use tl.where(m == -float("inf"), 0.0, m) in place of the maximum m.',
                    )


def _loaded_mask(found: KernelValues, scores: ast.expr) -> ast.expr | None:
    """The condition of tl.where(condition, x, -inf), where it depends on loaded data."""
    call = found.operation(found.bare(scores))
    if call is None or call.name != "where" or len(call.operands) != 3:
        return None
    mask, _, otherwise = call.operands
    is_infinite = found.number(otherwise) == -float("inf")
    return mask if is_infinite and _is_data(found, mask) else None


def _is_data(found: KernelValues, mask: ast.expr) -> bool:
    """Whether the condition tests a loaded block, and not a length."""
    loads = [node for node in found.origins(mask) if isinstance(node, ast.Call) and found.is_a(node, "load")]
    return any(
        "arange" in found.made_by(address) for load in loads if (address := argument(load, 0, "pointer"))
    )


def _is_looked_after(found: KernelValues, maximum: ast.expr) -> bool:
    """Whether the maximum is selected with tl.where, or starts from a finite number."""
    made = found.bare(maximum)
    if not isinstance(made, ast.Name):
        return found.is_a(made, "where")
    return any(found.is_a(one, "where") for one in found.definitions(made))
