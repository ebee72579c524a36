"""SmoothQuant-style smoothing of activations before they are quantised.

scale[c] = sqrt(max(max_t |x[t, c]|, FLOOR)) and out[t, c] = x[t, c] / scale[c], for x of [T, C] (T tokens,
C channels). The scales are float32, out has x's dtype.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[T, C]"}
DIMS = {"T": [1, 33, 2048], "C": [1, 80, 1024, 4000]}

FLOOR = 1e-5


def reference(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [T, C]. Returns out [T, C] in x's dtype and scale [C] in float32."""
    scale = x.float().abs().amax(dim=0).clamp(min=FLOOR).sqrt()
    return (x.float() / scale).to(x.dtype), scale


@triton.jit
def channel_scale_kernel(x_ptr, scale_ptr, n_tokens, x_row_stride, floor, BLOCK_T: tl.constexpr):
    """x_ptr: [n_tokens, n_channels], unit stride along channels. scale_ptr: [n_channels]."""
    channel = tl.program_id(0)
    tokens = tl.arange(0, BLOCK_T).to(tl.int64)
    amax = tl.zeros((BLOCK_T,), tl.float32)
    for start in range(0, n_tokens, BLOCK_T):
        t = start + tokens
        x = tl.load(x_ptr + t * x_row_stride + channel, mask=t < n_tokens, other=0.0)
        amax = tl.maximum(amax, tl.abs(x.to(tl.float32)))
    scale = tl.sqrt(tl.maximum(tl.max(amax, axis=0), floor))
    tl.store(scale_ptr + channel, scale)


@triton.jit
def smooth_kernel(
    x_ptr,
    scale_ptr,
    out_ptr,
    n_tokens,
    n_channels,
    x_row_stride,
    BLOCK_T: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """One program divides a [BLOCK_T, BLOCK_C] tile by its channels' scales."""
    tokens = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    channels = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    channel_mask = channels < n_channels
    mask = (tokens < n_tokens)[:, None] & channel_mask[None, :]
    scale = tl.load(scale_ptr + channels, mask=channel_mask, other=1.0)
    x = tl.load(x_ptr + tokens[:, None] * x_row_stride + channels[None, :], mask=mask, other=0.0)
    out = x.to(tl.float32) / scale[None, :]
    tl.store(out_ptr + tokens[:, None] * n_channels + channels[None, :], out, mask=mask)


def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [T, C]. Returns out [T, C], contiguous, in x's dtype, and scale [C] in float32."""
    n_tokens, n_channels = x.shape
    if x.stride(1) != 1:
        x = x.contiguous()
    out = torch.empty((n_tokens, n_channels), dtype=x.dtype, device=x.device)
    scale = torch.empty((n_channels,), dtype=torch.float32, device=x.device)
    if out.numel() == 0:
        return out, scale.fill_(FLOOR**0.5)
    BLOCK_T = min(triton.next_power_of_2(n_tokens), 1024)
    channel_scale_kernel[(n_channels,)](x, scale, n_tokens, x.stride(0), FLOOR, BLOCK_T=BLOCK_T)
    grid = (triton.cdiv(n_tokens, 16), triton.cdiv(n_channels, 128))
    smooth_kernel[grid](x, scale, out, n_tokens, n_channels, x.stride(0), BLOCK_T=16, BLOCK_C=128)
    return out, scale
