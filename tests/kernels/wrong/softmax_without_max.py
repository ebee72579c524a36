"""Wrong: the row maximum is not subtracted before the exponential, so large logits overflow to NaN."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 5, 33], "N": [1, 8, 100, 777]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns the softmax of each row, [M, N]."""
    return torch.softmax(x, dim=-1)


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stride_m, stride_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program handles BLOCK_M whole rows; BLOCK_N >= n_cols."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * stride_m + cols * stride_n, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x)
    denominator = tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(out_ptr + rows * n_cols + cols, numerator / denominator, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, 1024 // BLOCK_N)
    grid = (triton.cdiv(n_rows, BLOCK_M),)
    softmax_kernel[grid](x, out, n_rows, n_cols, x.stride(0), x.stride(1), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out
