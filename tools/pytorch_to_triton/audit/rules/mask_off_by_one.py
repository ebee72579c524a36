"""Bounds that include a size which certainly is a count of the elements at that address."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import MaskBound, addends, bounds, range_length
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.passed import size_of
from pytorch_to_triton.audit.analysis.programs import alike, grid_of, rounded_up
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel

_LAUNCH = """
def run(x, out):
    n = x.numel()
    kernel[(triton.cdiv(n, 64),)](x, out, n, B=64)
"""
_kernel = example("""
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
""")
BAD = (_kernel("mask = i <= n", "tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask), mask=mask)") + _LAUNCH,)
GOOD = (
    _kernel("x = tl.load(x_ptr + i - 1, mask=(i > 0) & (i <= n))") + _LAUNCH,
    # A causal mask compares offsets with offsets.
    _kernel(
        "j = tl.arange(0, B)",
        "x = tl.load(x_ptr + j[None, :], mask=(j[None, :] <= i[:, None]) & (j < n)[None, :])",
    )
    + _LAUNCH,
)


@kernel_rule("high", "correctness", BAD, GOOD)
def mask_off_by_one(kernel: SourceKernel) -> Iterator[Fault]:
    """A mask lets one element too many pass: `offsets <= n` where n is a count.

    The last element of n has the offset n - 1. The element at n is not the tensor's: it is read as if it
    were, or something else is overwritten.

    Fix: compare with `<`.
    """
    found: set[ast.Compare] = set()
    for access in kernel.accesses:
        for bound in bounds(access.mask, kernel):
            if bound.inclusive and bound.comparison not in found and _is_whole(bound, access, kernel):
                found.add(bound.comparison)
                size = ast.unparse(bound.size)
                text = ast.unparse(bound.offsets)
                yield Fault(
                    bound.comparison,
                    f"{size} is a count: the last valid offset is {size} - 1, and this mask lets {text} = "
                    f"{size} pass, one element beyond the end.",
                    f"Write {text} < {size}.",
                    f"{text} < {size}" if len(bound.comparison.ops) == 1 else "",
                )


def _is_whole(bound: MaskBound, access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether the bound's size counts what the offsets run over, from 0."""
    known = values(kernel)
    size = bound.size
    if not isinstance(size, ast.Name) or size.id not in kernel.parameters:
        return False
    if not any(range_length(part, kernel) for part in addends(bound.offsets, kernel)):
        return False
    made_from = known.origins(access.address)
    shifted = any(isinstance(node, ast.Sub | ast.USub | ast.Mod) for node in made_from)
    used = any(
        isinstance(node, ast.expr) and known.same(known.bare(node), known.bare(bound.offsets))
        for node in made_from
        if isinstance(node, ast.Name | ast.BinOp)
    )
    if shifted or not used:
        return False
    return _is_bound_elsewhere(bound, access, kernel) or any(
        _is_count(size.id, access, kernel, launch) for launch in kernel.launches
    )


def _is_bound_elsewhere(bound: MaskBound, access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether another access to the same tensor says `offsets < size` of the same two."""
    known = values(kernel)
    return any(
        not other.inclusive
        and known.same(known.bare(other.size), known.bare(bound.size))
        and known.same(known.bare(other.offsets), known.bare(bound.offsets))
        for another in kernel.accesses
        if another.pointer == access.pointer
        for other in bounds(another.mask, kernel)
    )


def _is_count(size: str, access: KernelAccess, kernel: SourceKernel, launch: LaunchSite) -> bool:
    """Whether a launch passes the tensor's own size, or has a program for each block of so many elements."""
    given = launch.given(kernel)
    if size not in given:
        return False
    extent = size_of(given[size], launch)
    tensor = given.get(access.pointer or "")
    if extent and tensor is not None and extent.tensor == ast.unparse(tensor):
        return True
    divisions = [rounded_up(element, launch) for element in grid_of(launch) or ()]
    return any(division and alike(division.size, given[size], launch) for division in divisions)
