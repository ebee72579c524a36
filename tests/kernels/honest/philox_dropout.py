"""Honest: dropout from a seed by tl.philox, whose random numbers the reference computes again in PyTorch."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "p": 0.3, "seed": 20_240_607}
DIMS = {"M": [1, 7], "N": [1, 64, 100, 300]}

WORD = 0xFFFFFFFF


def high_and_low(a: int, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The upper and the lower 32 bits of a * c, both below 2**32; c: int64."""
    upper, lower = a * (c >> 16), a * (c & 0xFFFF)
    return (upper + (lower >> 16)) >> 16, (((upper & 0xFFFF) << 16) + lower) & WORD


def philox(seed: int, c0: torch.Tensor, c1: torch.Tensor) -> torch.Tensor:
    """c0, c1: int64 counters below 2**32. Returns the first of Philox4x32-10's four words, int64."""
    c0, c1 = torch.broadcast_tensors(c0, c1)
    c2, c3 = torch.zeros_like(c0), torch.zeros_like(c0)
    k0, k1 = seed & WORD, seed >> 32
    for _ in range(10):
        (a_high, a_low), (b_high, b_low) = high_and_low(0xD2511F53, c0), high_and_low(0xCD9E8D57, c2)
        c0, c1, c2, c3 = b_high ^ c1 ^ k0, b_low, a_high ^ c3 ^ k1, a_low
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0


def reference(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]: x / (1 - p) where the seed keeps it, else 0, in x's dtype."""
    n_rows, n_cols = x.shape
    rows = torch.arange(n_rows, device=x.device)[:, None]
    cols = torch.arange(n_cols, device=x.device)[None, :]
    keep = philox(seed, cols, rows) >= int(p * 2**32)
    return torch.where(keep, x.float() / (1 - p), 0.0).to(x.dtype)


@triton.jit
def dropout_kernel(
    x_ptr, out_ptr, n_cols, scale, threshold, seed, x_row_stride, x_col_stride, BLOCK_N: tl.constexpr
):
    """Program (row, tile) handles BLOCK_N columns of a row. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    nothing = cols * 0
    word, _, _, _ = tl.philox(seed, cols, nothing + row, nothing, nothing)
    mask = cols < n_cols
    offsets = row.to(tl.int64) * x_row_stride + cols.to(tl.int64) * x_col_stride
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    out = tl.where(word.to(tl.int64) >= threshold, x * scale, 0.0)
    tl.store(out_ptr + row.to(tl.int64) * n_cols + cols, out, mask=mask)


def run(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = min(256, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    scale, threshold = 1 / (1 - p), int(p * 2**32)
    dropout_kernel[grid](x, out, n_cols, scale, threshold, seed, *x.stride(), BLOCK_N=BLOCK_N)
    return out
