"""Parts of convolutional and windowed vision models, and of their input pipelines."""

import torch
import torch.nn.functional as F
from torch import nn


class ResponseNorm(nn.Module):
    """Channels by their norm over all places. x: [B, H, W, 384]."""

    def __init__(self, channels: int = 384) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(channels))
        self.beta = nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.square().sum(dim=(1, 2), keepdim=True).add(1e-6).sqrt()
        relative = size / (size.mean(dim=-1, keepdim=True) + 1e-6)
        return self.gamma * (x * relative) + self.beta + x


def channel_gate(x, weight, bias):
    """Channels by a gate over their own means. x: [B, C, H, W], weight, bias: [C]."""
    mean = x.mean(dim=(2, 3))
    return x * F.hardsigmoid(mean * weight + bias)[:, :, None, None]


def windows_reversed(windows, shortcut):
    """Windows of 8 x 8 on an image of 64 x 64, rolled back. windows: [B * 64, 64, C], shortcut: [B, 64, 64, C]."""
    channels = windows.shape[-1]
    tiles = windows.view(-1, 8, 8, 8, 8, channels).permute(0, 1, 3, 2, 4, 5)
    image = tiles.reshape(-1, 64, 64, channels)
    return shortcut + torch.roll(image, shifts=(4, 4), dims=(1, 2))


def biased_softmax(scores, table, index):
    """Attention within windows with relative positions. scores: [W, H, 49, 49], table: [169, H], index: [49, 49]."""
    bias = table[index.flatten()].view(49, 49, -1).permute(2, 0, 1)
    return torch.softmax(scores * 0.177 + bias, dim=-1)


def residual_batch_norm(x, shortcut, mean, variance, weight, bias):
    """Batch norm with running statistics, residual, ReLU, and the pooled result. x, shortcut: [B, C, H, W]."""
    normed = F.batch_norm(x, mean, variance, weight, bias, training=False, eps=1e-5)
    active = F.relu(normed + shortcut)
    return active, active.mean(dim=(2, 3))


def mixed_images(image, target, share):
    """Each image with its opposite in the batch. image: [B, 3, H, W], target: [B, C], share: [B]."""
    other = 1 - share
    mixed = share.view(-1, 1, 1, 1) * image + other.view(-1, 1, 1, 1) * image.flip(0)
    return mixed, share[:, None] * target + other[:, None] * target.flip(0)


CALLS = {
    "ResponseNorm": {
        "INPUTS": {"x": "float32[B, H, W, 384]"},
        "DIMS": {"B": [2, 64], "H": [5, 28], "W": [6, 28]},
        "GRADIENTS": True,
    },
    "channel_gate": {
        "INPUTS": {"x": "bfloat16[B, C, H, W]", "weight": "bfloat16[C]", "bias": "bfloat16[C]"},
        "DIMS": {"B": [2, 128], "C": [3, 256], "H": [5, 28], "W": [6, 28]},
        "GRADIENTS": True,
    },
    "windows_reversed": {
        "INPUTS": {"windows": "bfloat16[64*B, 64, C]", "shortcut": "bfloat16[B, 64, 64, C]"},
        "DIMS": {"B": [1, 64], "C": [12, 128]},
        "GRADIENTS": True,
    },
    "biased_softmax": {
        "INPUTS": {
            "scores": "float32[W, H, 49, 49]",
            "table": "float32[169, H]",
            "index": "int64[49, 49] in 0..169",
        },
        "DIMS": {"W": [2, 1024], "H": [3, 8]},
        "GRADIENTS": True,
    },
    "residual_batch_norm": {
        "INPUTS": {
            "x": "float32[B, C, H, W]",
            "shortcut": "float32[B, C, H, W]",
            "mean": "float32[C]",
            "variance": "float32[C] in 0.5..2",
            "weight": "float32[C]",
            "bias": "float32[C]",
        },
        "DIMS": {"B": [2, 64], "C": [3, 512], "H": [5, 14], "W": [6, 14]},
    },
    "mixed_images": {
        "INPUTS": {
            "image": "float32[B, 3, H, W]",
            "target": "float32[B, 1000]",
            "share": "float32[B] in 0..1",
        },
        "DIMS": {"B": [2, 128], "H": [5, 224], "W": [6, 224]},
    },
}
