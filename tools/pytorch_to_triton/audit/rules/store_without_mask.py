"""A block is stored without a mask.

Where the tensor does not fill its last block, the store overwrites what lies behind it: another tensor, in
silence, or it is an illegal memory access.

Instead, pass mask= with a bound for every axis that may end inside a block.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.tails import may_overrun, tail_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
SUSPECTED = "low"
SETTLED_BY = ("out_of_bounds",)
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n))
""",
    """
@triton.jit
def kernel(out_ptr, stride, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ptrs = out_ptr + rows[:, None] * stride + tl.arange(0, BN)[None, :]
    tl.store(ptrs, tl.zeros((BM, BN), tl.float32))
""",
    """
@triton.jit
def kernel(total_ptr, n, B: tl.constexpr):
    tl.atomic_add(total_ptr + tl.program_id(0) * B + tl.arange(0, B), 1)
""",
)
GOOD = (
    """
@triton.jit
def kernel(out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, 0.0, i < n)
    tl.store(out_ptr + n, tl.sum(i))
""",
    """
@triton.jit
def kernel(out_ptr, n):
    tl.store(out_ptr + tl.program_id(0) * 16 + tl.arange(0, 16), 0.0)
""",
    """
@triton.jit
def kernel(out_ptr, D: tl.constexpr):
    tl.store(out_ptr + tl.program_id(0) * D + tl.arange(0, D), 0.0)

def run(out):
    rows, cols = out.shape
    kernel[(rows,)](out, D=cols)
""",
    """
@triton.jit
def kernel(desc, x_ptr, n, B: tl.constexpr):
    desc.store([0], tl.load(x_ptr + tl.arange(0, B), mask=tl.arange(0, B) < n))
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Block stores and atomics whose offsets nothing bounds: certainly beyond a size, or perhaps."""
    for access in kernel.accesses:
        if not access.writes or access.name == "atomic_cas":
            continue
        place = access.pointer or "The address"
        tail = tail_of(access, kernel)
        if tail and tail.severity:
            yield Fault(
                access.call,
                f"{place} is written in blocks of {tail.block} over {tail.size}, and no mask bounds them: "
                f"unless {tail.size} fills whole blocks, the last one overwrites what lies beyond its end.",
                f"Bound the offsets along {tail.size} with mask=, or assert that it fills whole blocks.",
                pointer=access.pointer or "",
                proof=tail.proof,
                severity=tail.severity,
            )
        elif tail is None and may_overrun(access, kernel):
            yield Fault(
                access.call,
                f"{place} is written a whole block at a time and without a mask: unless its size is a "
                "multiple of the block's, the last block overwrites what lies beyond its end.",
                "Add mask=offsets < size.",
                pointer=access.pointer or "",
            )
