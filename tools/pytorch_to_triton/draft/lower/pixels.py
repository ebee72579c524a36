"""Pixels moved to channels and back, and windows laid out as columns: no element is computed."""

from __future__ import annotations

from dataclasses import replace

from pytorch_to_triton.draft.ir.sizes import FloorDiv
from pytorch_to_triton.draft.ir.sizes import size as sized
from pytorch_to_triton.draft.lower.row import Context, row
from pytorch_to_triton.draft.lower.tensor import Tensor, reshaped


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
