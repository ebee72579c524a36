"""An output made with torch.empty_like gets the input's strides, and the kernel writes it as if contiguous.

torch.empty_like keeps the layout of a transposed tensor. The kernel gets the input's strides but not the
output's, so it writes each element where a contiguous tensor would have it: the caller sees them in wrong
places.

Fix: allocate with torch.empty(x.shape, dtype=x.dtype, device=x.device), pass memory_format, or pass the
output's strides, too.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.launched_tensors import (
    allocation,
    asked_of,
    callers_parameters,
    made_like,
    tensors_of,
)
from pytorch_to_triton.audit.analysis.passed import stride_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
SUSPECTED = "low"
CONFIRMED_BY = ("layout_ignored",)
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, stride_m, stride_n, B: tl.constexpr):
    m = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + m * stride_m + i * stride_n, mask=i < n)
    tl.store(out_ptr + m * n + i, x, mask=i < n)
"""
_RUN = """
def run(x):
    out = {}
    kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1), B=64)
    return out
"""
BAD = (
    _KERNEL + _RUN.format("torch.empty_like(x)"),
    _KERNEL
    + _RUN.format("torch.empty_like(x, dtype=torch.float32)").replace("x.stride(1)", "stride_n=x.stride(1)"),
)
GOOD = (
    _KERNEL + _RUN.format("torch.empty(x.shape, device=x.device)"),
    _KERNEL + _RUN.format("torch.empty_like(x, memory_format=torch.contiguous_format)"),
    _KERNEL + _RUN.format("torch.empty_like(x)").replace("out =", "x = x.contiguous()\n    out ="),
    _KERNEL + _RUN.format("torch.empty_like(x)").replace("out =", "assert x.is_contiguous()\n    out ="),
    # The same strides for both.
    _KERNEL.replace("m * n + i", "m * stride_m + i * stride_n") + _RUN.format("torch.empty_like(x)"),
    # A row's stride alone: the rest is taken for contiguous on both sides.
    _KERNEL.replace(" * stride_n", "") + _RUN.format("torch.empty_like(x)").replace("x.stride(1)", "1"),
)
_SETTLES = frozenset({"contiguous", "is_contiguous", "reshape", "view", "flatten"})


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Outputs like a caller's tensor whose strides are passed, with no stride in the addresses written."""
    written = {access.pointer for access in kernel.accesses if access.writes}
    for launch in kernel.launches:
        strides = _strides(kernel, launch)
        strided = {tensor for tensor, _ in strides.values()}
        for parameter, name in tensors_of(launch, kernel).items():
            made = allocation(name, launch)
            if parameter not in written or name in strided or not made or made[0] != "torch.empty_like":
                continue
            like = made_like(made[1])
            axes = {axis for tensor, axis in strides.values() if tensor == like}
            if (
                like
                and len(axes) > 1
                and _is_open(like, made[1], launch)
                and not _uses(kernel, parameter, strides)
            ):
                yield Fault(
                    made[1],
                    f"{name} gets the strides of {like}, and {kernel.node.name}, which gets those of "
                    f"{like}, writes {name} as if it were contiguous: wrong for a transposed {like}.",
                    f"Pass memory_format=torch.contiguous_format, or the strides of {name}, too.",
                )


def _strides(kernel: SourceKernel, launch: LaunchSite) -> dict[str, tuple[str, int | None]]:
    """The tensors and axes whose strides are passed, by the kernel's parameter."""
    found = {name: stride_of(value, launch) for name, value in launch.given(kernel).items()}
    return {name: (stride.tensor, stride.axis) for name, stride in found.items() if stride}


def _is_open(like: str, call: ast.Call, launch: LaunchSite) -> bool:
    """Whether the input is the caller's, as it came."""
    return (
        like in callers_parameters(launch)
        and len(launch.scope.bindings[like]) == 1
        and not asked_of(like, launch) & _SETTLES
        and not any(keyword.arg in ("memory_format", None) for keyword in call.keywords)
    )


def _uses(kernel: SourceKernel, parameter: str, strides: dict[str, tuple[str, int | None]]) -> bool:
    """Whether an address that is written may be made with any stride that was passed."""
    addresses = [
        access.address for access in kernel.accesses if access.writes and access.pointer in (parameter, None)
    ]
    return bool(kernel.flow.parameters(*addresses) & strides.keys())
