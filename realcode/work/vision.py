"""A vision transformer's parts, with and without windows."""

import torch
import torch.nn.functional as F
from torch import nn


class LayerScale(nn.Module):
    """A branch, scaled for each channel, on its residual. x, branch: [B, T, 1024]."""

    def __init__(self, width: int = 1024) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), 1e-5))

    def forward(self, x: torch.Tensor, branch: torch.Tensor) -> torch.Tensor:
        return x + branch * self.gamma


def window_partition(x, weight, bias):
    """Layer norm, then windows of 7 x 7. x: [B, 7 * H, 7 * W, C] -> [B * H * W, 49, C]."""
    batch, height, width, channels = x.shape
    normed = F.layer_norm(x, (channels,), weight, bias, 1e-5)
    tiles = normed.view(batch, height // 7, 7, width // 7, 7, channels)
    return tiles.permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, channels)


def patch_merging(x, weight, bias):
    """Four neighbours side by side, then layer norm. x: [B, H, W, C] -> [B, H // 2, W // 2, 4 * C]."""
    corners = (x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2])
    merged = torch.cat(corners, dim=-1)
    return F.layer_norm(merged, (merged.shape[-1],), weight, bias, 1e-5)


def pooled_attention(tokens, scores):
    """One vector an image, by attention over its tokens. tokens: [B, T, D], scores: [B, T]."""
    weight = torch.softmax(scores.float(), dim=-1).to(tokens.dtype)
    return (tokens * weight.unsqueeze(-1)).sum(dim=1)


def normalised_pixels(image, mean, deviation):
    """Bytes with channels last as normalised numbers with channels first. image: [B, H, W, 3]."""
    scaled = image.permute(0, 3, 1, 2).float() / 255
    return (scaled - mean[None, :, None, None]) / deviation[None, :, None, None]


CALLS = {
    "LayerScale": {
        "INPUTS": {"x": "float32[B, T, 1024]", "branch": "float32[B, T, 1024]"},
        "DIMS": {"B": [2, 32], "T": [5, 257]},
        "GRADIENTS": True,
    },
    "window_partition": {
        "INPUTS": {
            "x": "float32[B, 7*H, 7*W, C]",
            "weight": "float32[C]",
            "bias": "float32[C]",
        },
        "DIMS": {"B": [2, 64], "H": [2, 8], "W": [3, 8], "C": [12, 96]},
        "GRADIENTS": True,
    },
    "patch_merging": {
        "INPUTS": {
            "x": "float32[B, 2*H, 2*W, C]",
            "weight": "float32[4*C]",
            "bias": "float32[4*C]",
        },
        "DIMS": {"B": [2, 64], "H": [3, 28], "W": [4, 28], "C": [12, 96]},
        "GRADIENTS": True,
    },
    "pooled_attention": {
        "INPUTS": {"tokens": "bfloat16[B, T, D]", "scores": "bfloat16[B, T]"},
        "DIMS": {"B": [2, 128], "T": [5, 576], "D": [32, 1024]},
        "GRADIENTS": True,
    },
    "normalised_pixels": {
        "INPUTS": {
            "image": "uint8[B, H, W, 3] in 0..255",
            "mean": "float32[3] in 0.4..0.5",
            "deviation": "float32[3] in 0.2..0.3",
        },
        "DIMS": {"B": [2, 64], "H": [9, 224], "W": [10, 224]},
    },
}
