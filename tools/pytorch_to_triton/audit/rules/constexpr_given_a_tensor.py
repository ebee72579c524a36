"""A tensor is passed for a parameter that is tl.constexpr.

A tl.constexpr is a value that the compiler puts into the kernel; memory cannot be read or written through it.
The kernel does not compile, or recompiles for every tensor.

Fix: leave the annotation off pointers, and keep tl.constexpr for block sizes, flags and dtypes.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import makes_tensor, tensor_parameters
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr: tl.constexpr, n):
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel())
    return out
""",
    """
@triton.jit
def kernel(x_ptr, bias: tl.constexpr):
    if bias:
        tl.store(x_ptr, 0.0)

def run(x, bias):
    assert bias.is_contiguous()
    kernel[(1,)](x, bias=bias)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 0.0, mask=i < n)

def run(x, bias, size):
    kernel[(1,)](x, x.numel(), bias is not None, BLOCK=size)
""",
    """
@triton.jit
def kernel(x_ptr, OFFSET: tl.constexpr):
    tl.store(OFFSET + x_ptr, 0.0)

def run(x):
    kernel[(1,)](x, 2)
""",
    """
@triton.jit
def helper(x_ptr: tl.constexpr):
    tl.store(x_ptr, 0.0)
""",
    """
@triton.jit
def kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 0.0)

def run(x, n):
    if isinstance(n, torch.Tensor):
        n = n.numel()
    kernel[(1,)](x, n)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Tensors that launches pass for tl.constexpr parameters, or else addresses that start from one."""
    reported: set[str] = set()
    for launch in kernel.launches:
        for name, value in launch.given(kernel).items():
            if name in kernel.constexprs and name not in reported and _is_tensor(value, launch):
                reported.add(name)
                yield Fault(
                    value,
                    f"{name} of {kernel.node.name} is a tl.constexpr, and this launch passes a tensor.",
                    f"Leave tl.constexpr off {name}, or pass a number.",
                )
    for access in kernel.accesses if kernel.is_launched else ():
        if access.pointer in kernel.constexprs - reported and _starts_from(access, kernel):
            reported.add(access.pointer)
            yield Fault(
                access.call,
                f"{access.pointer} is a tl.constexpr, and tl.{access.name} uses it as an address.",
                f"Leave tl.constexpr off {access.pointer}.",
            )


def _is_tensor(value: ast.expr, launch: LaunchSite) -> bool:
    """Whether an argument certainly is a tensor: made by torch, or a parameter used as one."""
    if makes_tensor(launch.flow.resolved(value), launch.scope):
        return True
    function = launch.function
    return function is not None and isinstance(value, ast.Name) and value.id in tensor_parameters(function)


def _starts_from(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether nothing else in the address can be the pointer."""
    others = kernel.flow.parameters(access.address) - {access.pointer}
    return not others & kernel.runtime_parameters
