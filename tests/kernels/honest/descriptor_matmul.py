"""Honest: loads tiles through tensor descriptors; operands that these cannot describe are copied before."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

INPUTS = {"a": "float32|bfloat16[M, K]", "b": "float32|bfloat16[K, N]"}
DIMS = {"M": [1, 33, 64], "N": [1, 40, 64], "K": [1, 32, 100]}

ALIGNMENT = 16
LONGEST_STRIDE = 1 << 31
BLOCK_M, BLOCK_N, BLOCK_K = 32, 32, 32


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: [M, K]; b: [K, N], in a's dtype. Returns [M, N] in a's dtype."""
    return a @ b


@triton.jit
def descriptor_matmul_kernel(
    a_desc, b_desc, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Program (i, j) computes a BLOCK_M x BLOCK_N tile. a_desc: [M, K]; b_desc: [K, N]; out_ptr: [M, N]."""
    first_row = tl.program_id(0) * BLOCK_M
    first_col = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, K, BLOCK_K):
        a = a_desc.load([first_row, start])
        b = b_desc.load([start, first_col])
        acc = tl.dot(a, b, acc, input_precision="ieee")
    rows = (first_row + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    cols = (first_col + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    tl.store(out_ptr + rows * N + cols, acc, mask=(rows < M) & (cols < N))


def describable(x: torch.Tensor) -> bool:
    """Whether a descriptor can stand for x [M, N]: adjacent columns, rows in order and 16-byte aligned."""
    starts_aligned = x.data_ptr() % ALIGNMENT == 0
    rows_aligned = x.stride(0) * x.element_size() % ALIGNMENT == 0
    in_order = x.stride(1) == 1 and x.shape[1] <= x.stride(0) < LONGEST_STRIDE
    return starts_aligned and rows_aligned and in_order


def described(x: torch.Tensor, block: list[int]) -> TensorDescriptor:
    """A descriptor of x [M, N], or of a copy with padded rows."""
    if not describable(x):
        n_rows, n_cols = x.shape
        padded = triton.cdiv(n_cols, ALIGNMENT) * ALIGNMENT
        buffer = torch.empty((n_rows, padded), dtype=x.dtype, device=x.device)
        x = buffer[:, :n_cols].copy_(x)
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block)


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: [M, K]; b: [K, N], of one dtype, any strides. Returns [M, N], contiguous, in that dtype."""
    (M, K), N = a.shape, b.shape[1]
    out = torch.zeros((M, N), dtype=a.dtype, device=a.device)
    if out.numel() == 0 or K == 0:
        return out
    a_desc, b_desc = described(a, [BLOCK_M, BLOCK_K]), described(b, [BLOCK_K, BLOCK_N])
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    descriptor_matmul_kernel[grid](a_desc, b_desc, out, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
    return out
