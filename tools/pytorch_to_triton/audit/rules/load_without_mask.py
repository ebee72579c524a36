"""A block is loaded without a mask.

Where the tensor does not fill its last block, the load reads what lies behind it: values of other tensors,
or an illegal memory access.

Instead, pass mask= with a bound for every axis that may end inside a block, and other= where the value
counts.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.tails import may_overrun, tail_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
SUSPECTED = "info"
SETTLED_BY = ("out_of_bounds",)
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i), mask=i < n)
""",
    """
import triton.language as language

@triton.jit
def kernel(x_ptr, n_cols, stride, B: language.constexpr):
    ptrs = x_ptr + language.program_id(axis=0) * stride + language.arange(0, B)
    total = 0.0
    for _ in range(0, n_cols, B):
        total += language.sum(language.load(pointer=ptrs))
        ptrs += B
""",
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)

def run(x):
    kernel[(1,)](x, x.numel(), B=triton.next_power_of_2(x.numel()))
""",
    # The mask bounds the rows, and the loop walks over K in whole blocks.
    """
@triton.jit
def kernel(x_ptr, out_ptr, M, K, B: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        cols = k * BK + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + cols[None, :], mask=rows[:, None] < M, other=0.0)
        total += tl.sum(x, axis=1)
    tl.store(out_ptr + rows, total, mask=rows < M)

def run(x, out):
    M, K = x.shape
    kernel[(triton.cdiv(M, 32),)](x, out, M, K, B=32, BK=64)
""",
)
GOOD = (
    # The launching function refuses what does not fill whole blocks.
    """
@triton.jit
def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i))

def run(x, out):
    n = x.numel()
    assert n % 1024 == 0
    kernel[(triton.cdiv(n, 1024),)](x, out, B=1024)
""",
    # REQUIRES says so.
    """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [1024, 4096]}
REQUIRES = ["N % 1024 == 0"]

@triton.jit
def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i))

def run(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 1024),)](x, out, B=1024)
    return out
""",
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n)
    first = tl.load(x_ptr)
    table = tl.load(x_ptr + tl.arange(0, 8))
""",
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B)) % n
    x = tl.load(x_ptr + i)
""",
    """
@triton.jit
def kernel(x_ptr, n, EVEN: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    if EVEN:
        x = tl.load(x_ptr + i)
    else:
        x = tl.load(x_ptr + i, mask=i < n)
""",
    """
@triton.jit
def kernel(x_ptr, stride, D: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * stride + tl.arange(0, D))

def run(x):
    kernel[(x.shape[0],)](x, x.stride(0), D=x.shape[1])
""",
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (B,), (0,))
    x = tl.load(block, boundary_check=(0,))
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Block loads whose offsets nothing bounds: certainly beyond a size of the file, or perhaps."""
    for access in kernel.accesses:
        if access.name != "load":
            continue
        source = access.pointer or "The address"
        tail = tail_of(access, kernel)
        if tail and tail.severity:
            yield Fault(
                access.call,
                f"{source} is read in blocks of {tail.block} over {tail.size}, and no mask bounds them: "
                f"unless {tail.size} fills whole blocks, the last one reads beyond its end.",
                f"Bound the offsets along {tail.size} with mask=, and give other= where masked lanes "
                f"count; or assert that {tail.size} fills whole blocks.",
                pointer=access.pointer or "",
                proof=tail.proof,
                severity=tail.severity,
            )
        elif tail is None and may_overrun(access, kernel):
            yield Fault(
                access.call,
                f"{source} is read a whole block at a time and without a mask: unless its size is a "
                "multiple of the block's, the last block reads beyond its end.",
                "Add mask=offsets < size, and other= where masked lanes count.",
                pointer=access.pointer or "",
            )
