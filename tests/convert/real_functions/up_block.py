"""A decoder's step: upsampled by a transposed convolution, joined with what the encoder kept."""

import torch
from torch import nn

INPUTS = {"x": "float32|bfloat16[B, 6, H, W]", "skip": "float32|bfloat16[B, 3, 2 * H, 2 * W]"}
DIMS = {"B": [1, 2], "H": [1, 3], "W": [2, 5]}


class UpBlock(nn.Module):
    """x: [B, channels, H, W]; skip: [B, channels / 2, 2 H, 2 W]. Returns [B, channels / 2, 2 H, 2 W]."""

    def __init__(self, channels: int = 6) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(channels, channels // 2, kernel_size=2, stride=2)
        self.conv = nn.Conv2d(channels, channels // 2, kernel_size=3, padding=1)
        self.act = nn.LeakyReLU(0.2)

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        x = torch.cat([self.up(x), skip], dim=1)
        return self.act(self.conv(x))
