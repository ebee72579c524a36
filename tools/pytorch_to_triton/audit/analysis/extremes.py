"""Maxima and minima over lanes that were not loaded: whether the result shows it."""

import ast
import re

from pytorch_to_triton.audit.analysis.arithmetic import KernelValues, values
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_NEVER_NEGATIVE = re.compile(
    r"len|count|num|size|idx|index|indices|pos|offs|cu_|mask|flag|seg|abs|scale|prob|hist|token|expert|id(?:s|x)?(?:_|$)",
    re.IGNORECASE,
)
"""Names of pointers to what is no less than zero: lengths, places, counts."""


def is_decisive(extreme: ast.expr, load: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether lanes that a load left out may well decide a maximum or minimum, and so a result.

    Not where it loads lengths, places and the like, nor where the maximum only keeps exponentials small and
    those of the masked lanes are not summed up.
    """
    if load.pointer is None or _NEVER_NEGATIVE.search(load.pointer):
        return False
    known = values(kernel)
    exponentials = [
        node
        for node in kernel.nodes
        if isinstance(node, ast.Call) and _is_exponential(node) and extreme in known.origins(*node.args)
    ]
    if any(access.value is not None and known.bare(access.value) is extreme for access in kernel.accesses):
        return True
    counted = [one for one in exponentials if not is_masked_later(one, known) and _is_summed(one, known)]
    return not exponentials or bool(counted)


def _is_exponential(call: ast.Call) -> bool:
    """Whether it is tl.exp or the like, a function of the project's own among them."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "exp" in name and not name.startswith(("expand", "expm1"))
    return False


def _is_summed(value: ast.expr, known: KernelValues) -> bool:
    """Whether tl.sum adds a value up; a function that kernels call leaves that to them."""
    sums = [call for call in known.operations if call.name == "sum"]
    if not sums and not known.kernel.is_launched:
        return True
    return any(value in known.origins(*call.operands) for call in sums)


def is_masked_later(value: ast.expr, known: KernelValues) -> bool:
    """Whether tl.where chooses from a value, or a comparison is multiplied with it."""
    if value in known.selected:
        return True
    for node in known.expressions:
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                for one, other in ((left, right), (right, left)):
                    if known.bare(one) is value and _is_mask(other, known):
                        return True
    return False


def _is_mask(value: ast.expr, known: KernelValues) -> bool:
    match known.bare(value):
        case ast.Compare():
            return True
        case ast.BinOp(left=left, op=ast.BitAnd()):
            return _is_mask(left, known)
    return False
