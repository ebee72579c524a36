"""Upper bounds of differences that may be negative, in masks that bound nothing from below."""

import ast
from collections import Counter
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import (
    MaskBound,
    bounds,
    conjuncts,
    is_block,
    program_axis,
    range_length,
)
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Suspicion, kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, n, shift, W: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    for w in range({steps}):
        at = {at}
        x = tl.load(x_ptr + at, mask={mask}, other=0.0)
        tl.store(x_ptr + i, x, mask=i < n)
"""
BAD = (
    _KERNEL.format(steps="W", at="i - (W - 1) + w", mask="at < n"),
    _KERNEL.format(steps="n", at="i - w", mask="(at < n) & (i < n)"),
)
GOOD = (_KERNEL.format(steps="W", at="i - (W - 1) + w", mask="(at >= 0) & (at < n)"),)
Terms = list[tuple[int, ast.expr]]
"""What a sum adds up, each with its sign."""


@kernel_rule("critical", "correctness", BAD, GOOD, suspected=Suspicion("low", ("out_of_bounds",)))
def mask_without_lower_bound(kernel: SourceKernel) -> Iterator[Fault]:
    """Positions from which something is subtracted are masked at the upper end alone.

    The first of them are negative: `-1 < n` lets them through, and the access reaches the row before, or
    what lies in front of the tensor.

    Fix: mask both ends: (i >= 0) & (i < n).
    """
    found: set[ast.Compare] = set()
    for access in kernel.accesses:
        for bound in _upper_bounds(access, kernel):
            if bound.comparison in found or not _may_be_negative(bound.offsets, kernel):
                continue
            if _is_in(bound.offsets, access.address, kernel):
                found.add(bound.comparison)
                text = ast.unparse(bound.offsets)
                yield Fault(
                    bound.comparison,
                    f"{text} is a difference that may be negative, and the mask bounds it from above alone: "
                    f"the access may reach what lies before the row or the tensor of {access.pointer}.",
                    f"Mask {text} >= 0, too.",
                    f"({text} >= 0) & ({ast.unparse(bound.comparison)})",
                )


def _upper_bounds(access: KernelAccess, kernel: SourceKernel) -> list[MaskBound]:
    """The bounds of a mask; empty where anything in it, or around the access, may be a lower bound."""
    if access.mask is None or kernel.flow.conditions(access.call):
        return []
    limits = list(bounds(access.mask, kernel))
    compared = {limit.comparison for limit in limits}
    if any(condition not in compared for condition in conjuncts(access.mask, kernel)):
        return []
    return limits if all(_is_end(limit.size, kernel) for limit in limits) else []


def _is_end(size: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is no offset itself: it is the same for all lanes and programs."""
    made_from = kernel.flow.origins(size)
    return not is_block(size, kernel) and not any(
        program_axis(node, kernel) is not None for node in made_from if isinstance(node, ast.Call)
    )


def _is_in(offsets: ast.expr, address: ast.expr, kernel: SourceKernel) -> bool:
    """Whether an address is made from just these offsets."""
    found = values(kernel)
    key = found.key(found.bare(offsets))
    return any(
        found.key(found.bare(node)) == key for node in found.origins(address) if isinstance(node, ast.expr)
    )


def _may_be_negative(offsets: ast.expr, kernel: SourceKernel) -> bool:
    """Whether all that a sum adds up can be zero while it takes something off."""
    found = values(kernel)
    if not is_block(offsets, kernel):
        return False
    number, rest, parts = 0.0, Counter[int](), dict[int, ast.expr]()
    for sign, term in _terms(offsets, kernel):
        constant = found.number(term)
        if constant is not None:
            number += sign * constant
        else:
            rest[found.key(term)] += sign
            parts[found.key(term)] = term
    added = [parts[key] for key, count in rest.items() if count > 0]
    taken = [parts[key] for key, count in rest.items() if count < 0]
    if not all(_can_be_zero(term, kernel) for term in added):
        return False
    if not taken:
        return number < 0
    return number <= 1 and all(_is_step(term, kernel) or _is_parameter(term, kernel) for term in taken)


def _terms(value: ast.expr, kernel: SourceKernel) -> Terms:
    bare = values(kernel).bare(value)
    match bare:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_terms(left, kernel), *_terms(right, kernel)]
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return [*_terms(left, kernel), *((-sign, term) for sign, term in _terms(right, kernel))]
    return [(1, bare)]


def _can_be_zero(term: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is a program id, a range from zero, a loop's step from zero, or made of such."""
    bare = values(kernel).bare(term)
    match bare:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _can_be_zero(left, kernel) and _can_be_zero(right, kernel)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _can_be_zero(left, kernel) or _can_be_zero(right, kernel)
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod()):
            return _can_be_zero(left, kernel)
    return (
        program_axis(bare, kernel) is not None
        or range_length(bare, kernel) is not None
        or _is_step(bare, kernel)
    )


def _is_step(term: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is what a loop counts up from zero: a name for it leads to the loop's range."""
    match term:
        case ast.Call(func=ast.Name(id="range"), args=args):
            pass
        case ast.Call(args=args) if values(kernel).is_a(term, "range", "static_range"):
            pass
        case _:
            return False
    return len(args) == 1 or (len(args) > 1 and values(kernel).number(args[0]) == 0)


def _is_parameter(term: ast.expr, kernel: SourceKernel) -> bool:
    return isinstance(term, ast.Name) and term.id in kernel.parameters
