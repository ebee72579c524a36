"""Pixels moved to channels and back, and windows laid out as columns: no element is computed."""

from __future__ import annotations

from dataclasses import replace

from pytorch_to_triton.draft.ir.sizes import FloorDiv
from pytorch_to_triton.draft.ir.sizes import size as sized
from pytorch_to_triton.draft.lower.row import Context, row
from pytorch_to_triton.draft.lower.tensor import Tensor, position, reshaped
from pytorch_to_triton.draft.lower.windows import LETTERS, Numbers, Slide, for_each, outputs, seen, sliding


@row("aten.pixel_shuffle.default")
def pixel_shuffle(ctx: Context, input: Tensor, upscale_factor: int) -> Tensor:
    r = sized(upscale_factor)
    *lead, channels, height, width = input.shape
    split = reshaped(ctx.names, input, (*lead, FloorDiv(channels, r * r), r, r, height, width))
    *kept, below, beside, h, w = split.dims
    return replace(split, dims=(*kept, h + below, w + beside))


@row("aten.pixel_unshuffle.default")
def pixel_unshuffle(ctx: Context, input: Tensor, downscale_factor: int) -> Tensor:
    r = sized(downscale_factor)
    *lead, height, width = input.shape
    split = reshaped(ctx.names, input, (*lead, FloorDiv(height, r), r, FloorDiv(width, r), r))
    *kept, c, h, below, w, beside = split.dims
    return replace(split, dims=(*kept, c + below + beside, h, w))


@row("aten.channel_shuffle.default", "aten.native_channel_shuffle.default")
def channel_shuffle(ctx: Context, input: Tensor, groups: int) -> Tensor:
    batch, channels, *image = input.shape
    g = sized(groups)
    split = reshaped(ctx.names, input, (batch, g, FloorDiv(channels, g), *image))
    n, group, c, *kept = split.dims
    return replace(split, dims=(n, c + group, *kept))


@row("aten.im2col.default")
def im2col(
    ctx: Context, input: Tensor, kernel_size: Numbers, dilation: Numbers, padding: Numbers, stride: Numbers
) -> Tensor:
    """[..., C, H, W] -> [..., C * taps, windows]."""
    options = (for_each(n, 2) for n in (kernel_size, stride, padding, dilation))
    moves = [Slide(sized(k), s, p, d, p) for k, s, p, d in zip(*options, strict=True)]
    *lead, channels = input.dims[:-2]
    down, across = (
        sliding(ctx, letter, size, outputs(size, move), move)
        for letter, size, move in zip(LETTERS[2], input.shape[-2:], moves, strict=True)
    )
    value = seen(input, [*map(position, (*lead, channels))], (down, across), 0.0)
    return ctx.tensor((*lead, channels + down.taps + across.taps, down.out + across.out), value)
