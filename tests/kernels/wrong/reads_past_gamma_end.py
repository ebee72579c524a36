"""Wrong: the mask is missing on the load of gamma, which reads past its end; the stored values are right."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]", "y": "float32|bfloat16[M, N]", "gamma": "float32|bfloat16[N]"}
DIMS = {"M": [1, 5, 30], "N": [1, 16, 70, 300]}


def reference(x: torch.Tensor, y: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """x, y: [M, N]; gamma: [N]. Returns the layer-scaled residual x + gamma * y, [M, N], in x's dtype."""
    return (x.float() + gamma.float() * y.float()).to(x.dtype)


@triton.jit
def layer_scale_kernel(
    x_ptr,
    y_ptr,
    gamma_ptr,
    out_ptr,
    n_cols,
    x_stride_m,
    x_stride_n,
    y_stride_m,
    y_stride_n,
    gamma_stride,
    BLOCK_N: tl.constexpr,
):
    """Program (row, i) handles the i-th BLOCK_N columns of a row."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_stride_m + cols * x_stride_n, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + row * y_stride_m + cols * y_stride_n, mask=mask).to(tl.float32)
    gamma = tl.load(gamma_ptr + cols * gamma_stride).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x + gamma * y, mask=mask)


def run(x: torch.Tensor, y: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = 128
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    layer_scale_kernel[grid](
        x, y, gamma, out, n_cols, *x.stride(), *y.stride(), gamma.stride(0), BLOCK_N=BLOCK_N
    )
    return out
