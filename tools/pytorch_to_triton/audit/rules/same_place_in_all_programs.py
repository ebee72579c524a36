"""Every program of a grid stores its own result at the same place.

The programs run in any order, and the last store stays: the results of all others are lost.

Fix: give each program its own place by its tl.program_id, or combine the results with tl.atomic_add.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.programs import is_updated, shared_axes
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "high"
CATEGORY = "correctness"
_LAUNCH = """
def run(x, out):
    n = x.numel()
    kernel[(triton.cdiv(n, 64),)](x, out, n, B=64)
"""
_kernel = example("""
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
""")
BAD = (
    _kernel(
        "i = tl.program_id(0) * B + tl.arange(0, B)",
        "tl.store(out_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))",
    )
    + _LAUNCH,
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, index_ptr, out_ptr):
    row = tl.program_id(0)
    out_ptr += tl.load(index_ptr + row)
    tl.store(out_ptr, tl.load(x_ptr + row))

def run(x, index, out):
    kernel[(x.numel(),)](x, index, out)
""",
    """
@triton.jit
def kernel(out_ptr, n, B: tl.constexpr):
    tl.store(out_ptr, n)
    tl.store(out_ptr + 1 + tl.program_id(0), n)
"""
    + _LAUNCH.replace("x, out, n", "out, n"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Stores of what differs between programs, at places that do not."""
    for access in kernel.accesses:
        axes = shared_axes(access, kernel) if access.name == "store" else frozenset()
        if axes and is_updated(access, kernel):
            continue
        for axis in sorted(axes):
            yield Fault(
                access.call,
                f"The value depends on tl.program_id({axis}), and its place in {access.pointer} does not: "
                "all programs along this axis write there, and one result stays.",
                f"Add an offset made of tl.program_id({axis}) to {access.pointer}, or use an atomic.",
            )
