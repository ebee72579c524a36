"""Group normalisation of x[b, c, l] over (channels of a group, l), with one weight and bias per channel.

The channels of a group lie next to each other in memory, so a group is one run of C / GROUPS * L elements;
one program keeps that run in registers.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[B, C, L]",
    "weight": "float32|bfloat16|float16[C]",
    "bias": "float32|bfloat16|float16[C]",
}
DIMS = {"B": [1, 5], "C": [16, 64, 96], "L": [1, 64, 500]}

GROUPS = 8
EPS = 1e-5
MAX_BLOCK = 32768


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, C, L], weight and bias: [C]. Returns [B, C, L] in x's dtype."""
    out = torch.nn.functional.group_norm(x.float(), GROUPS, weight.float(), bias.float(), EPS)
    return out.to(x.dtype)


@triton.jit
def group_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    group_size,
    channels_per_group,
    length,
    eps,
    N_GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program per (batch element, group). All tensors are contiguous; BLOCK >= group_size."""
    pid = tl.program_id(0)
    group = pid % N_GROUPS
    base = pid.to(tl.int64) * group_size

    offs = tl.arange(0, BLOCK)
    mask = offs < group_size
    x = tl.load(x_ptr + base + offs, mask=mask, other=0.0).to(tl.float32)

    inv_count = 1.0 / BLOCK
    mean = tl.sum(x, axis=0) * inv_count
    centered = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centered * centered, axis=0) * inv_count
    x_hat = centered * tl.rsqrt(var + eps)

    channel = group * channels_per_group + offs // length
    weight = tl.load(weight_ptr + channel, mask=mask, other=1.0).to(tl.float32)
    bias = tl.load(bias_ptr + channel, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + base + offs, x_hat * weight + bias, mask=mask)


def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, C, L], weight and bias: [C]. Returns [B, C, L], contiguous, in x's dtype."""
    batch, channels, length = x.shape
    if channels % GROUPS:
        raise ValueError(f"{channels} channels do not divide into {GROUPS} groups")
    group_size = channels // GROUPS * length
    block = triton.next_power_of_2(max(group_size, 1))
    if block > MAX_BLOCK:
        raise ValueError(f"a group of {group_size} elements is too large for one program")
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    num_warps = min(max(block // 512, 1), 16)
    group_norm_kernel[(batch * GROUPS,)](
        x,
        weight,
        bias,
        out,
        group_size,
        channels // GROUPS,
        length,
        EPS,
        N_GROUPS=GROUPS,
        BLOCK=block,
        num_warps=num_warps,
    )
    return out
