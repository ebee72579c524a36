"""Programs that share a place load from it, change the value and store it back.

Between one program's load and its store others do the same, and what they added is lost. How much, differs
from run to run.

Fix: use tl.atomic_add (or tl.atomic_max and the like), or give each program its own place and sum up
later.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.programs import is_updated, shared_axes
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, total_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    part = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0))
    tl.store(total_ptr, tl.load(total_ptr) + part)

def run(x, total):
    n = x.numel()
    kernel[(triton.cdiv(n, 64),)](x, total, n, B=64)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, total_ptr, lock_ptr):
    part = tl.load(x_ptr + tl.program_id(0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(total_ptr, tl.load(total_ptr) + part)
    tl.atomic_xchg(lock_ptr, 0)

def run(x, total, lock):
    kernel[(x.numel(),)](x, total, lock)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Stores at a place that all programs share, of what they loaded there."""
    for access in kernel.accesses:
        axes = shared_axes(access, kernel) if access.name == "store" else frozenset()
        if axes and not is_updated(access, kernel):
            continue
        for axis in sorted(axes):
            yield Fault(
                access.call,
                f"All programs along axis {axis} load from the same place in {access.pointer}, change the "
                "value and store it: updates of programs that run at the same time are lost.",
                f"Use tl.atomic_add on {access.pointer}, or store partial results by tl.program_id({axis}).",
            )
