"""Group norm of [B, C, L] activations with a per-channel affine transform.

Each of the B * GROUPS groups holds C / GROUPS * L contiguous values. One program owns one group: the first
loop gathers its statistics, the second one normalises it.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[B, C, L]",
    "weight": "float32|bfloat16|float16[C]",
    "bias": "float32|bfloat16|float16[C]",
}
DIMS = {"B": [1, 3], "C": [8, 64, 320], "L": [1, 49, 1000, 4096]}

GROUPS = 8
EPS = 1e-5


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, C, L], weight and bias: [C]. Returns [B, C, L] in x's dtype."""
    return F.group_norm(x.float(), GROUPS, weight.float(), bias.float(), EPS).to(x.dtype)


@triton.jit
def group_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    length,
    channels_per_group,
    eps,
    N_GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """x_ptr, out_ptr: [B, C, L], contiguous. One program normalises one group."""
    pid = tl.program_id(0).to(tl.int64)
    group = pid % N_GROUPS
    size = channels_per_group * length
    x_ptr += pid * size
    out_ptr += pid * size

    sums = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, size, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < size, other=0.0).to(tl.float32)
        sums += x
        squares += x * x
    mean = tl.sum(sums, axis=0) / size
    var = tl.sum(squares, axis=0) / size - mean * mean
    rstd = tl.rsqrt(var + eps)

    for start in range(0, size, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < size
        channel = group * channels_per_group + offs // length
        x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + channel, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + channel, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + offs, (x - mean) * rstd * weight + bias, mask=mask)


def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, C, L], weight and bias: [C]. Returns [B, C, L], contiguous, in x's dtype."""
    batch, channels, length = x.shape
    if channels % GROUPS:
        raise ValueError(f"{channels} channels cannot be divided into {GROUPS} groups")
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    size = channels // GROUPS * length
    BLOCK = min(triton.next_power_of_2(size), 4096)
    group_norm_kernel[(batch * GROUPS,)](
        x,
        weight,
        bias,
        out,
        length,
        channels // GROUPS,
        EPS,
        N_GROUPS=GROUPS,
        BLOCK=BLOCK,
        num_warps=8 if BLOCK >= 2048 else 4,
    )
    return out
