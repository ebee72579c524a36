"""Convolution, batch normalisation with running statistics, and ReLU, beside a shortcut."""

import torch
from torch import nn

INPUTS = {"x": "float32|bfloat16[B, 3, H, W]"}
DIMS = {"B": [1, 2], "H": [3, 8], "W": [4, 7]}


class ConvBnRelu(nn.Module):
    """x: [B, in_channels, H, W]. Returns [B, out_channels, ceil(H / stride), ceil(W / stride)]."""

    def __init__(self, in_channels: int = 3, out_channels: int = 8, stride: int = 2) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Conv2d(in_channels, out_channels, kernel_size=1, stride=stride)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn(self.conv(x))
        out += self.shortcut(x)
        return self.relu(out)
