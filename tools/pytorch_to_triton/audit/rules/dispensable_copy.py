"""A tensor is made contiguous although the kernel is given all its strides.

`.contiguous()` copies a transposed or sliced tensor to memory, in a kernel of its own. A kernel that
computes addresses from the strides reads the original just as well.

Fix: pass the tensor as it is. Keep the copy only where it was measured to pay, as in a kernel that reads
the tensor several times against its layout.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.launched_tensors import rank_of, tensors_of
from pytorch_to_triton.audit.analysis.movement import escapes
from pytorch_to_triton.audit.analysis.passed import stride_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

SEVERITY = "low"
CATEGORY = "performance"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, stride_m, stride_n, B: tl.constexpr):
    m = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + m * stride_m + i * stride_n, mask=i < n)
    tl.store(out_ptr + m * n + i, x, mask=i < n)
"""
_RUN = """
def run(x, out):
    {}
    m, n = x.shape
    kernel[(m,)](x, out, n, x.stride(0), x.stride(1), B=64)
"""
BAD = (
    _KERNEL + _RUN.format("x = x.contiguous()"),
    _KERNEL
    + _RUN.format("x, out = x.contiguous(), out.contiguous()").replace("x.stride(1)", "stride_n=x.stride(1)"),
)
GOOD = (
    _KERNEL + _RUN.format("pass"),
    # The kernel takes the last axis for contiguous.
    _KERNEL.replace(" * stride_n", "") + _RUN.format("x = x.contiguous()"),
    _KERNEL + _RUN.format("x = x.contiguous()").replace("x.stride(1)", "1"),
    # Not every axis has a stride.
    _KERNEL + _RUN.format("x = x.contiguous()").replace("m, n =", "b, m, n ="),
    # The flat view needs it.
    _KERNEL + _RUN.format("x = x.contiguous().view(-1, 64)"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Copies of tensors of known rank whose strides are all passed, and used in the addresses."""
    for launch in kernel.launches:
        for parameter, name in tensors_of(launch, kernel).items():
            copy = _copy(name, launch)
            rank = rank_of(name, launch) if copy else None
            if copy is None or rank is None or escapes(kernel, parameter):
                continue
            strides = {own: stride_of(value, launch) for own, value in launch.given(kernel).items()}
            axes_by = {
                own: stride.axis for own, stride in strides.items() if stride and stride.tensor == name
            }
            axes = {axis % rank for axis in axes_by.values() if axis is not None}
            if axes == {*range(rank)} and _all_used(kernel, parameter, frozenset(axes_by)):
                yield Fault(
                    copy,
                    f"{name}.contiguous() may copy the tensor, and {kernel.node.name} reads it by all its "
                    f"{rank} strides anyway.",
                    f"Pass {name} as it is, unless the copy was measured to pay.",
                    name,
                )


def _copy(name: str, launch: LaunchSite) -> ast.expr | None:
    """`name.contiguous()` where that is all that the name is assigned."""
    match launch.flow.feeds(name):
        case (ast.Call(func=ast.Attribute(value=ast.Name(id=own), attr="contiguous"), args=[]) as call,):
            return call if own == name else None
    return None


def _all_used(kernel: SourceKernel, parameter: str, strides: frozenset[str]) -> bool:
    """Whether every address of a pointer is computed with all its strides."""
    uses = [access for access in kernel.accesses if access.pointer == parameter]
    return bool(uses) and all(
        not access.writes and strides <= kernel.flow.parameters(access.address) for access in uses
    )
