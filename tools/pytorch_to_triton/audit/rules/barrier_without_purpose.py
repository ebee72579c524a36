"""Barriers outside loops, in launched kernels that call nothing but triton.language."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_RUN = "\ndef run(x, out):\n    kernel[(1,)](x, out)\n"
_kernel = example("""
@triton.jit
def kernel(x_ptr, out_ptr):
    i = tl.arange(0, 16)
""")
BAD = (_kernel("x = tl.load(x_ptr + i)", "tl.debug_barrier()", "tl.store(out_ptr + i, x)") + _RUN,)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n):
    for k in range(n):
        x = tl.load(x_ptr + k)
        tl.debug_barrier()
        tl.store(x_ptr + k + 1, x)
"""
    + _RUN,
    """
@triton.jit
def kernel(x_ptr):
    prepare(x_ptr)
    tl.debug_barrier()
    tl.store(x_ptr, tl.load(x_ptr + 1))
"""
    + _RUN,
)


@kernel_rule("info", "performance", BAD, GOOD)
def barrier_without_purpose(kernel: SourceKernel) -> Iterator[Fault]:
    """tl.debug_barrier() stands between accesses that have nothing to do with each other.

    A barrier lets the warps of one program wait for each other, so that what one stored can be loaded by
    another. Where no memory is accessed on both sides of it, it only costs time; it never synchronizes
    different programs.

    Fix: delete it; where programs have to wait for each other, launch a second kernel.
    """
    barriers = [call for path, call in kernel.calls() if path == "triton.language.debug_barrier"]
    if not barriers or not kernel.launches or _calls_others(kernel):
        return
    for barrier in barriers:
        if kernel.flow.loops(barrier):
            continue
        before = [one for one in kernel.accesses if one.call.lineno < barrier.lineno]
        after = [one for one in kernel.accesses if one.call.lineno > barrier.lineno]
        if not any(_may_conflict(one, other) for one in before for other in after):
            yield Fault(
                barrier,
                f"Nothing that {kernel.node.name} accesses before this barrier is accessed after it, too.",
                "Delete the barrier.",
            )


def _may_conflict(one: KernelAccess, other: KernelAccess) -> bool:
    """Whether two accesses may meet in memory and one of them writes."""
    same = one.pointer is None or other.pointer is None or one.pointer == other.pointer
    return same and (one.writes or other.writes)


def _calls_others(kernel: SourceKernel) -> bool:
    """Whether it calls what may access memory unseen: other kernels, or methods of descriptors."""
    for node in kernel.nodes:
        match node:
            case ast.Call(func=func):
                path = kernel.scope.path(func)
                name = func.attr if isinstance(func, ast.Attribute) else ""
                if path is None and name != "to" and not _is_range(func):
                    return True
                if path is not None and not path.startswith("triton.language."):
                    return True
    return False


def _is_range(func: ast.expr) -> bool:
    return isinstance(func, ast.Name) and func.id == "range"
