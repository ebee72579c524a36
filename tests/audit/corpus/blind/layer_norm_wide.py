"""Layer norm of each row, no affine part."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]", "eps": 1e-5}
DIMS = {"M": [1, 64], "N": [128, 1000, 2048]}


def reference(x: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, (x.shape[1],), eps=eps)


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, stride_x, stride_y, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / N
    diff = tl.where(mask, x - mean, 0.0)
    var = tl.sum(diff * diff, axis=0) / N
    y = diff / tl.sqrt(var + eps)
    tl.store(y_ptr + row * stride_y + cols, y, mask=mask)


def run(x: torch.Tensor, eps: float) -> torch.Tensor:
    x = x.contiguous()
    M, N = x.shape
    y = torch.empty_like(x)
    if y.numel() == 0:
        return y
    layer_norm_kernel[(M,)](x, y, x.stride(0), y.stride(0), N, eps, BLOCK_SIZE=1024)
    return y
