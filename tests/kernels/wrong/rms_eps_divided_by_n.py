"""Wrong: eps is added to the sum of squares, not to their mean, which shows only on rows of small values."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "w": "float32|bfloat16[N]", "eps": 1e-6}
DIMS = {"M": [1, 7], "N": [1, 64, 100, 1000]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w: [N]. Returns [M, N]: RMS-normalised rows, in x's dtype."""
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * scale * w.float()).to(x.dtype)


@triton.jit
def rms_norm_kernel(
    x_ptr, w_ptr, out_ptr, n_cols, eps, x_row_stride, x_col_stride, w_stride, BLOCK_N: tl.constexpr
):
    """One program normalises one row; BLOCK_N >= n_cols. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * w_stride, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt((tl.sum(x * x, axis=0) + eps) / n_cols)
    tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def run(x: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N], any strides; w: [N], any stride. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    strides = (*x.stride(), w.stride(0))
    BLOCK_N = triton.next_power_of_2(n_cols)
    rms_norm_kernel[(n_rows,)](x, w, out, n_cols, eps, *strides, BLOCK_N=BLOCK_N)
    return out
