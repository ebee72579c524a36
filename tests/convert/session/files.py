"""Targets, and what an assistant would write for them: right, wrong, cheating, uncoalesced."""

DOUBLED = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [3], "N": [40]}


def f(x):
    return 2.0 * x + 1.0
"""
DOUBLED_KERNEL = '''
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """Compute 2 x + 1 for a block. x_ptr, out_ptr: [n_elements]."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n_elements)
    tl.store(out_ptr + i, 2.0 * x + 1.0, mask=i < n_elements)


def run(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if n_elements := x.numel():
        double_kernel[(triton.cdiv(n_elements, 64),)](x, out, n_elements, BLOCK=64)
    return out
'''
AUTOTUNED = (
    DOUBLED_KERNEL.replace(
        "@triton.jit",
        """@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 1024})], key=["n_elements"]
)
@triton.jit""",
    )
    .replace("(triton.cdiv(n_elements, 64),)", 'lambda meta: (triton.cdiv(n_elements, meta["BLOCK"]),)')
    .replace("n_elements, BLOCK=64)", "n_elements)")
)
PLANTED_BUG = DOUBLED_KERNEL.replace("i < n_elements", "i < n_elements - 1")
CHEATING = DOUBLED_KERNEL.replace("    return out\n", "    return 2.0 * x + 1.0\n")
UNKNOWN_NAME = DOUBLED_KERNEL.replace("tl.load(", "tl.load_block(")
UNCOALESCED = '''
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["M", "N"])
@triton.jit
def double_kernel(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    """Compute 2 x + 1 for a block of a column. x_ptr, out_ptr: [M, N]."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    i = row * N + tl.program_id(1)
    x = tl.load(x_ptr + i, mask=row < M)
    tl.store(out_ptr + i, 2.0 * x + 1.0, mask=row < M)


def run(x):
    x = x.contiguous()
    M, N = x.shape
    out = torch.empty_like(x)
    if x.numel():
        double_kernel[lambda meta: (triton.cdiv(M, meta["BLOCK"]), N)](x, out, M, N)
    return out
'''

BUCKETS = """
INPUTS = {"x": "float32[N]", "edges": "float32[K]"}
DIMS = {"N": [40], "K": [5]}


def f(x, edges):
    return torch.bucketize(x, edges)
"""
BUCKETS_KERNEL = '''
import torch
import triton
import triton.language as tl


@triton.jit
def bucket_kernel(x_ptr, edges_ptr, out_ptr, N, K, BLOCK: tl.constexpr):
    """Find the first edge that is not below each element. x_ptr, out_ptr: [N]; edges_ptr: [K]."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    x = tl.load(x_ptr + i, mask=mask)
    low = tl.zeros([BLOCK], tl.int64)
    high = low + K
    for _ in range(32):
        middle = (low + high) // 2
        open_ = low < high
        edge = tl.load(edges_ptr + middle, mask=mask & open_)
        above = open_ & ~(edge >= x)
        low = tl.where(above, middle + 1, low)
        high = tl.where(open_ & ~above, middle, high)
    tl.store(out_ptr + i, low, mask=mask)


def run(x, edges):
    x, edges = x.contiguous(), edges.contiguous()
    out = torch.empty(x.shape, dtype=torch.int64, device=x.device)
    if N := x.numel():
        bucket_kernel[(triton.cdiv(N, 64),)](x, edges, out, N, edges.numel(), BLOCK=64)
    return out
'''
