"""Causal depthwise convolution along the sequence, as in state-space models."""

import torch
import torch.nn.functional as F

INPUTS = {
    "x": "float32|bfloat16[B, T, C]",
    "weight": "float32|bfloat16[C, 1, 4]",
    "bias": "float32|bfloat16[C]",
}
DIMS = {"B": [1, 2], "T": [1, 9], "C": [3, 16]}


def depthwise(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [B, T, C]; weight: [C, 1, 4]; bias: [C]. Returns [B, T, C]."""
    kernel = weight.shape[-1]
    h = F.pad(x.transpose(1, 2), (kernel - 1, 0))
    h = F.conv1d(h, weight, bias, groups=x.shape[-1])
    return F.silu(h).transpose(1, 2)
