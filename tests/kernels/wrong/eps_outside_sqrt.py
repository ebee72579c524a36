"""Wrong: eps is added after the square root, which shows only on rows of small values."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]", "weight": "float32|bfloat16|float16[N]", "eps": 1e-5}
DIMS = {"M": [1, 4, 29], "N": [1, 16, 100, 600]}


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; weight: [N]. Returns [M, N] in x's dtype."""
    wide = x.float()
    rms = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide / rms * weight.float()).to(x.dtype)


@triton.jit
def rms_norm_kernel(
    x_ptr, weight_ptr, out_ptr, n_cols, eps, stride_m, stride_n, stride_w, BLOCK_N: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_m
    out_ptr += row * n_cols
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + cols * stride_n, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols * stride_w, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / n_cols
    rms = tl.sqrt(mean_square) + eps
    tl.store(out_ptr + cols, x / rms * weight, mask=mask)


def run(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    rms_norm_kernel[(n_rows,)](
        x, weight, out, n_cols, eps, x.stride(0), x.stride(1), weight.stride(0), BLOCK_N=BLOCK_N
    )
    return out
