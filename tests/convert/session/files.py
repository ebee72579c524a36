"""Targets, and what an assistant would write for them: right, wrong, cheating, uncoalesced."""

DOUBLED = """
INPUTS = {"x": "float32[M, N] in -4..4"}
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

GCD = """
INPUTS = {"x": "int32[N]", "y": "int32[N]"}
DIMS = {"N": [40]}


def f(x, y):
    return torch.gcd(x, y)
"""
GCD_KERNEL = '''
import torch
import triton
import triton.language as tl


@triton.jit
def gcd_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Find the greatest common divisor of each pair by Euclid's steps. x_ptr, y_ptr, out_ptr: [N]."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    x = tl.abs(tl.load(x_ptr + i, mask=mask, other=0))
    y = tl.abs(tl.load(y_ptr + i, mask=mask, other=0))
    for _ in range(46):
        rest = x % tl.where(y == 0, 1, y)
        x, y = tl.where(y == 0, x, y), tl.where(y == 0, 0, rest)
    tl.store(out_ptr + i, x, mask=mask)


def run(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    if N := x.numel():
        gcd_kernel[(triton.cdiv(N, 64),)](x, y, out, N, BLOCK=64)
    return out
'''
