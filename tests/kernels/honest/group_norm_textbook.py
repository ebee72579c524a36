"""Honest: group normalisation as the formula has it; PyTorch folds mean and weight into one scale and shift.

Where a weight is infinite, PyTorch's scale and shift are opposite infinities, and this is infinite.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[B, 2 * C, L]", "weight": "float32[2 * C]", "bias": "float32[2 * C]", "eps": 1e-5}
DIMS = {"B": [1, 3], "C": [1, 5], "L": [4, 33]}


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [B, 2 C, L], two groups; weight, bias: [2 C]. Returns [B, 2 C, L]."""
    return torch.nn.functional.group_norm(x, 2, weight, bias, eps)


@triton.jit
def group_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n_channels, length, eps, BLOCK: tl.constexpr):
    """Program (b, g) normalises n_channels channels of one batch; BLOCK >= n_channels * length."""
    group = tl.program_id(0).to(tl.int64) * 2 + tl.program_id(1)
    offsets = tl.arange(0, BLOCK)
    n_elements = n_channels * length
    mask = offsets < n_elements
    x = tl.load(x_ptr + group * n_elements + offsets, mask=mask, other=0.0)
    centred = tl.where(mask, x - tl.sum(x, axis=0) / n_elements, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_elements + eps)
    channels = tl.program_id(1) * n_channels + offsets // length
    weight = tl.load(weight_ptr + channels, mask=mask)
    bias = tl.load(bias_ptr + channels, mask=mask)
    tl.store(out_ptr + group * n_elements + offsets, centred * rstd * weight + bias, mask=mask)


def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [B, 2 C, L]; weight, bias: [2 C]. Returns [B, 2 C, L]."""
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_batches, n_channels, length = x.shape
    if x.numel() > 0:
        BLOCK = triton.next_power_of_2(n_channels // 2 * length)
        group_norm_kernel[(n_batches, 2)](x, weight, bias, out, n_channels // 2, length, eps, BLOCK=BLOCK)
    return out
