"""Wrong: the variance is divided by N - 1, where layer norm takes the biased one."""

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16[M, N]",
    "w": "float32|bfloat16[N]",
    "b": "float32|bfloat16[N]",
    "eps": 1e-5,
}
DIMS = {"M": [1, 7], "N": [8, 64, 1000]}
REQUIRES = ["N > 0"]


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w, b: [N], in x's dtype. Returns [M, N] in x's dtype."""
    return torch.nn.functional.layer_norm(x, w.shape, w, b, eps)


@triton.jit
def layer_norm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    w_stride,
    b_stride,
    BLOCK_N: tl.constexpr,
):
    """One program normalises one row; BLOCK_N >= n_cols. out_ptr: [n_rows, n_cols], contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    centred = tl.where(mask, x - tl.sum(x, axis=0) / n_cols, 0.0)
    variance = tl.sum(centred * centred, axis=0) / tl.maximum(n_cols - 1, 1)
    w = tl.load(w_ptr + cols * w_stride, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols * b_stride, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, centred * tl.rsqrt(variance + eps) * w + b, mask=mask)


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N], any strides; w, b: [N], any stride. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    strides = (x.stride(0), x.stride(1), w.stride(0), b.stride(0))
    BLOCK_N = triton.next_power_of_2(n_cols)
    layer_norm_kernel[(n_rows,)](x, w, b, out, n_cols, eps, *strides, BLOCK_N=BLOCK_N)
    return out
