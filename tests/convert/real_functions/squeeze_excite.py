"""Channels weighted by what a small network makes of their means."""

import torch
from torch import nn

INPUTS = {"x": "float32|bfloat16[B, 12, H, W]"}
DIMS = {"B": [1, 3], "H": [1, 5], "W": [4, 7]}


class SqueezeExcite(nn.Module):
    """x: [B, channels, H, W]. Returns [B, channels, H, W]."""

    def __init__(self, channels: int = 12, reduction: int = 4) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(channels, channels // reduction, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(channels // reduction, channels, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, c, _, _ = x.size()
        y = self.pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)
