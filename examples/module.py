"""A normalised, gated residual branch as nn.Module: its parameters become the kernel's arguments."""

import torch
import torch.nn.functional as F
from torch import nn

INPUTS = {"x": "float32[M, 64]"}
DIMS = {"M": [1, 7, 512]}


class GatedResidual(nn.Module):
    """x: [M, width]. Returns [M, width]."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x)
        return x + torch.sigmoid(self.gate) * F.silu(normed)
