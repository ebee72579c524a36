"""The first access all of whose ranges are multiplied with what certainly is large; the rest is named."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import is_block, is_loaded
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.launched_tensors import rank_of
from pytorch_to_triton.audit.analysis.passed import size_of, stride_of
from pytorch_to_triton.audit.analysis.polynomials import polynomial
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, rows, cols, stride_row, stride_col, B: tl.constexpr):
    col = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i * {step} + col, mask=i < rows, other=0.0)
    tl.store(out_ptr + col, tl.sum(x))

def run(x, out):
    rows, cols = x.shape
    kernel[(cols,)](x, out, rows, cols, x.stride(0), x.stride(1), B=1024)
"""
BAD = (_KERNEL.format(step="cols"),)
GOOD = (
    # A stride that nobody knows.
    """
@triton.jit
def kernel(x_ptr, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i * stride, 0.0, mask=i < n)

def run(x):
    kernel[(1,)](x, x.stride(0), x.numel(), B=64)
""",
)
_FEW = 4
"""Elements from lane to lane that still share sectors."""


@kernel_rule("low", "memory access", BAD, GOOD)
def strided_access(kernel: SourceKernel) -> Iterator[Fault]:
    """Neighboring lanes of a block access memory that lies far apart.

    Memory is read in sectors of 32 bytes. Where consecutive lanes are a row apart, each one fetches a
    sector for itself and uses one element of it, so most of the bandwidth is lost.

    Fix: let a tl.arange run along the axis whose stride is 1: give a program a block of several columns, or
    a two-dimensional block, or store the tensor the other way around.
    """
    found = [
        (access, steps)
        for access in kernel.accesses
        if access.pointer and access.name in ("load", "store") and (steps := _steps(kernel, access))
    ]
    if found:
        (first, steps), *_ = found
        tensors = ", ".join(dict.fromkeys(str(access.pointer) for access, _ in found))
        yield Fault(
            first.call,
            f"Neighboring lanes lie {' and '.join(steps)} elements apart in {tensors}: each of them "
            "fetches a memory sector of its own.",
            "Let a tl.arange run along the axis whose stride is 1, in a two-dimensional block for one.",
        )


def _steps(kernel: SourceKernel, access: KernelAccess) -> list[str]:
    """What each range of an address is multiplied with; empty unless all of that certainly is large."""
    known = values(kernel)
    parts = (known.bare(node) for node in known.origins(access.address) if isinstance(node, ast.expr))
    by_key = {known.key(part): part for part in parts}
    found: list[str] = []
    for monomial, count in (polynomial(access.address, kernel, access.pointer) or {}).items():
        factors = [by_key[key] for key in monomial]
        ranges = [one for one in factors if is_block(one, kernel) and not is_loaded(one, kernel)]
        large = [one for one in factors if one not in ranges and _is_large(one, kernel)]
        if not ranges:
            continue
        if not all(known.is_a(one, "arange") for one in ranges) or not (large or count > _FEW):
            return []
        found.append(ast.unparse(large[0]) if large else str(count))
    return list(dict.fromkeys(found))


def _is_large(factor: ast.expr, kernel: SourceKernel) -> bool:
    """A large literal, or a parameter that every launch gives a size or a row's stride."""
    literal = literal_integer(kernel.flow.resolved(factor))
    if literal is not None:
        return literal > _FEW
    if not isinstance(factor, ast.Name) or factor.id not in kernel.parameters:
        return False
    if kernel.flow.feeds(factor.id) or not kernel.launches:
        return False
    given = [(launch, launch.given(kernel).get(factor.id)) for launch in kernel.launches]
    return all(value is not None and _is_row(value, launch) for launch, value in given)


def _is_row(value: ast.expr, launch: LaunchSite) -> bool:
    """`x.shape[1]`, or `x.stride(0)` of what certainly has more axes."""
    if whole := literal_integer(value):
        return whole > _FEW
    if size_of(value, launch):
        return True
    stride = stride_of(value, launch)
    if stride is None or stride.axis is None:
        return False
    rank = rank_of(stride.tensor, launch)
    return rank is not None and 0 <= stride.axis < rank - 1
