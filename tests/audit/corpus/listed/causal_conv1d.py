"""Causal depthwise convolution with SiLU, the short convolution in front of a state space layer.

out[b, c, l] = silu(bias[c] + sum_k weight[c, k] * x[b, c, l - (K - 1) + k]), with zeros before the start.
"""

import torch
import torch.nn.functional as F
import triton as tr
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[B, C, L]",
    "weight": "float32|bfloat16|float16[C, K]",
    "bias": "float32|bfloat16|float16[C]",
}
DIMS = {"B": [1, 3], "C": [5, 32], "L": [1, 128, 300, 2048], "K": [2, 4]}


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, C, L], weight: [C, K], bias: [C]. Returns [B, C, L] in x's dtype."""
    channels, width = weight.shape
    padded = F.pad(x.float(), (width - 1, 0))
    y = F.conv1d(padded, weight.float()[:, None, :], bias.float(), groups=channels)
    return F.silu(y).to(x.dtype)


@tr.jit
def conv_kernel(
    x_ptr, w_ptr, bias_ptr, out_ptr, channels, length, WIDTH: tl.constexpr, BLOCK: tl.constexpr
):
    """Program (r, j): BLOCK outputs of row r of the [B * C, L] view. All tensors are contiguous."""
    row = tl.program_id(0)
    channel = row % channels
    start = row.to(tl.int64) * length
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)

    acc = tl.zeros((BLOCK,), tl.float32) + tl.load(bias_ptr + channel).to(tl.float32)
    for k in tl.static_range(WIDTH):
        pos = offs - (WIDTH - 1) + k
        x = tl.load(x_ptr + start + pos, mask=(pos >= 0) & (pos < length), other=0.0)
        w = tl.load(w_ptr + channel * WIDTH + k)
        acc += x.to(tl.float32) * w.to(tl.float32)

    y = acc * tl.sigmoid(acc)
    tl.store(out_ptr + start + offs, y)


def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, C, L], weight: [C, K], bias: [C]. Returns [B, C, L], contiguous, in x's dtype."""
    batch, channels, length = x.shape
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    block = min(1024, max(128, tr.next_power_of_2(length)))
    grid = (batch * channels, tr.cdiv(length, block))
    conv_kernel[grid](
        x, weight, bias, out, channels, length, WIDTH=weight.shape[1], BLOCK=block, num_warps=4
    )
    return out
