"""Causal depthwise convolution with SiLU, as in front of a state-space layer.

out[b, c, t] = silu(bias[c] + sum_w weight[c, w] * x[b, c, t - (W - 1) + w]), where x is 0 before t = 0.
x and out are [B, C, T], weight is [C, W], bias is [C].
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[B, C, T]",
    "weight": "float32|bfloat16|float16[C, W]",
    "bias": "float32|bfloat16|float16[C]",
}
DIMS = {"B": [1, 2], "C": [1, 24, 96], "T": [1, 100, 1024], "W": [2, 3, 4]}


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, C, T], weight: [C, W], bias: [C]. Returns [B, C, T] in x's dtype."""
    width = weight.shape[1]
    padded = F.pad(x.float(), (width - 1, 0))
    out = F.conv1d(padded, weight.float()[:, None, :], bias.float(), groups=x.shape[1])
    return F.silu(out).to(x.dtype)


@triton.jit
def causal_conv1d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    n_channels,
    n_steps,
    x_stride_b,
    x_stride_c,
    x_stride_t,
    WIDTH: tl.constexpr,
    BLOCK_T: tl.constexpr,
):
    """One program computes BLOCK_T steps of one channel. out_ptr: [B, C, T], contiguous."""
    pid = tl.program_id(0).to(tl.int64)
    batch = pid // n_channels
    channel = pid % n_channels
    steps = tl.program_id(1).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    step_mask = steps < n_steps
    x_ptr += batch * x_stride_b + channel * x_stride_c

    acc = tl.zeros((BLOCK_T,), tl.float32) + tl.load(bias_ptr + channel).to(tl.float32)
    for w in tl.static_range(WIDTH):
        src = steps - (WIDTH - 1) + w
        x = tl.load(x_ptr + src * x_stride_t, mask=src < n_steps, other=0.0)
        acc += x.to(tl.float32) * tl.load(weight_ptr + channel * WIDTH + w).to(tl.float32)
    out = acc * tl.sigmoid(acc)
    tl.store(out_ptr + pid * n_steps + steps, out, mask=step_mask)


def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, C, T], any strides, weight: [C, W], bias: [C]. Returns [B, C, T], contiguous, in x's dtype."""
    batch, channels, steps = x.shape
    weight, bias = weight.contiguous(), bias.contiguous()
    out = torch.empty((batch, channels, steps), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    BLOCK_T = min(max(triton.next_power_of_2(steps), 128), 1024)
    grid = (batch * channels, triton.cdiv(steps, BLOCK_T))
    causal_conv1d_kernel[grid](
        x,
        weight,
        bias,
        out,
        channels,
        steps,
        x.stride(0),
        x.stride(1),
        x.stride(2),
        WIDTH=weight.shape[1],
        BLOCK_T=BLOCK_T,
        num_warps=4,
    )
    return out
