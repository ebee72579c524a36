"""Global average pooling over the spatial positions of a channels-last feature map."""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.heuristics(
    {
        "BLOCK_C": lambda args: min(64, triton.next_power_of_2(args["channels"])),
        "BLOCK_P": lambda args: min(64, triton.next_power_of_2(args["positions"])),
    }
)
@triton.jit
def avg_pool_kernel(
    x_ptr,
    out_ptr,
    positions,
    channels,
    inv_positions,
    stride_b,
    stride_p,
    stride_c,
    BLOCK_P: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Program (i, b) averages BLOCK_C channels of image b over all its positions.

    x_ptr: [batch, positions, channels], any strides. out_ptr: [batch, channels], contiguous.
    """
    batch = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    p = tl.arange(0, BLOCK_P)
    base = x_ptr + batch * stride_b + c[None, :].to(tl.int64) * stride_c

    acc = tl.zeros((BLOCK_P, BLOCK_C), dtype=x_ptr.dtype.element_ty)
    for start in tl.range(0, positions, BLOCK_P):
        pos = start + p
        mask = (pos < positions)[:, None] & (c < channels)[None, :]
        acc += tl.load(base + pos[:, None].to(tl.int64) * stride_p, mask=mask, other=0.0)

    mean = tl.sum(acc.to(tl.float32), axis=0) * inv_positions
    tl.store(out_ptr + batch * channels + c, mean, mask=c < channels)


def global_avg_pool(x: torch.Tensor) -> torch.Tensor:
    """x: [batch, channels, height, width], best in channels_last. Returns [batch, channels] in x's dtype.

    float32, float16 and bfloat16 are supported. There is no backward pass.
    """
    if x.dim() != 4:
        raise ValueError(f"expected 4 dimensions, got {x.dim()}")
    batch, channels, height, width = x.shape
    positions = height * width
    if positions == 0:
        raise ValueError("the feature map is empty")
    x = x.contiguous(memory_format=torch.channels_last)
    x = x.permute(0, 2, 3, 1).reshape(batch, positions, channels)
    out = torch.empty((batch, channels), dtype=x.dtype, device=x.device)

    def grid(meta):
        return triton.cdiv(channels, meta["BLOCK_C"]), batch

    avg_pool_kernel[grid](x, out, positions, channels, 1.0 / positions, *x.stride(), num_warps=4)
    return out


class GlobalAvgPoolHead(nn.Module):
    """Pools a feature map and projects it to class scores, for inference."""

    def __init__(self, channels: int, n_classes: int):
        super().__init__()
        self.fc = nn.Linear(channels, n_classes)

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(global_avg_pool(x))
