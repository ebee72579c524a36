"""Rotary position embedding, half-split layout (GPT-NeoX): x is [B, S, H, D], cos and sin are [S, D/2]."""

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|float16[B, S, H, 2*HALF]",
    "cos": "float32[S, HALF] in -1..1",
    "sin": "float32[S, HALF] in -1..1",
}
DIMS = {"B": [1, 2], "S": [1, 16, 33], "H": [1, 4], "HALF": [16, 32, 40]}


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    x1, x2 = x.float().chunk(2, dim=-1)
    c = cos[None, :, None, :]
    s = sin[None, :, None, :]
    return torch.cat([x1 * c - x2 * s, x2 * c + x1 * s], dim=-1).to(x.dtype)


@triton.jit
def rotary_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr,
    S, H, HALF,
    x_sb, x_ss, x_sh, x_sd,
    o_sb, o_ss, o_sh, o_sd,
    cos_stride, sin_stride,
    BLOCK: tl.constexpr,
):
    pid = tl.program_id(0)
    head = pid % H
    pos = (pid // H) % S
    batch = pid // (H * S)

    d = tl.arange(0, BLOCK)
    mask = d < HALF
    c = tl.load(cos_ptr + pos * cos_stride + d, mask=mask, other=0.0)
    s = tl.load(sin_ptr + pos * sin_stride + d, mask=mask, other=0.0)

    x_base = x_ptr + batch * x_sb + pos * x_ss + head * x_sh
    o_base = out_ptr + batch * o_sb + pos * o_ss + head * o_sh
    x1 = tl.load(x_base + d * x_sd, mask=mask, other=0.0).to(tl.float32)
    x2 = tl.load(x_base + (d + HALF) * x_sd, mask=mask, other=0.0).to(tl.float32)
    o1 = x1 * c - x2 * s
    o2 = x2 * c + x1 * s
    tl.store(o_base + d * o_sd, o1.to(out_ptr.dtype.element_ty), mask=mask)
    tl.store(o_base + (d + HALF) * o_sd, o2.to(out_ptr.dtype.element_ty), mask=mask)


def run(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    B, S, H, D = x.shape
    cos = cos.contiguous()
    sin = sin.contiguous()
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    half = D // 2
    rotary_kernel[(B * S * H,)](
        x, cos, sin, out, S, H, half, *x.stride(), *out.stride(), cos.stride(0), sin.stride(0),
        BLOCK=triton.next_power_of_2(half), num_warps=1,
    )
    return out
