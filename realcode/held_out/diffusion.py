"""A diffusion model's parts: an autoencoder's norms, a transformer's modulation, samplers and losses."""

import torch
import torch.nn.functional as F
from torch import nn


class GroupNormSiLU(nn.Module):
    """x: [B, 256, H, W]."""

    def __init__(self, channels: int = 256, groups: int = 32) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels, eps=1e-6, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.norm(x))


def gated_then_modulated(x, branch, gate, shift, scale):
    """A branch on its residual, and what the next block starts from. x, branch: [B, T, D], the others [B, 1, D]."""
    total = x + gate * branch
    normed = F.layer_norm(total, (total.shape[-1],), eps=1e-6)
    return total, normed * (1 + scale) + shift


def adaptive_instance_norm(x, scale, shift):
    """Each channel of each image normed over its places. x: [B, C, H, W], scale, shift: [B, C]."""
    mean = x.mean(dim=(2, 3), keepdim=True)
    variance = x.var(dim=(2, 3), keepdim=True, unbiased=False)
    normed = (x - mean) / torch.sqrt(variance + 1e-5)
    return normed * (1 + scale[:, :, None, None]) + shift[:, :, None, None]


def unpatchified(tokens, bias):
    """Tokens of 2 x 2 patches as an image. tokens: [B, H, W, 64], bias: [64] -> [B, 16, 2 * H, 2 * W]."""
    batch, height, width, _ = tokens.shape
    patches = (tokens + bias).view(batch, height, width, 2, 2, 16)
    return patches.permute(0, 5, 1, 3, 2, 4).reshape(batch, 16, 2 * height, 2 * width)


def heun_step(x, velocity, next_velocity, sigma, next_sigma):
    """A step of second order. x and both velocities: [B, C, H, W], sigma, next_sigma: [B]."""
    width = (next_sigma - sigma)[:, None, None, None]
    return x + width * 0.5 * (velocity + next_velocity)


def min_snr_loss(prediction, noise, alpha):
    """The mean square error, weighted by the signal-to-noise ratio. prediction, noise: [B, C, H, W], alpha: [B]."""
    each = (prediction.float() - noise.float()).pow(2).mean(dim=(1, 2, 3))
    ratio = alpha / (1 - alpha)
    return (each * torch.minimum(ratio, torch.full_like(ratio, 5.0)) / ratio).mean()


def positions_2d(rows, columns):
    """Sines and cosines of both coordinates. rows: [H], columns: [W] -> [H, W, 256]."""
    frequencies = 1.0 / 10000 ** (torch.arange(64, device=rows.device).float() / 64)
    across = rows[:, None] * frequencies
    along = columns[:, None] * frequencies
    across = torch.cat((across.sin(), across.cos()), dim=-1)[:, None]
    along = torch.cat((along.sin(), along.cos()), dim=-1)[None]
    height, width = rows.shape[0], columns.shape[0]
    return torch.cat((across.expand(height, width, 128), along.expand(height, width, 128)), dim=-1)


CALLS = {
    "GroupNormSiLU": {
        "INPUTS": {"x": "bfloat16[B, 256, H, W]"},
        "DIMS": {"B": [1, 4], "H": [5, 256], "W": [6, 256]},
        "GRADIENTS": True,
    },
    "gated_then_modulated": {
        "INPUTS": {
            "x": "bfloat16[B, T, D]",
            "branch": "bfloat16[B, T, D]",
            "gate": "bfloat16[B, 1, D]",
            "shift": "bfloat16[B, 1, D]",
            "scale": "bfloat16[B, 1, D]",
        },
        "DIMS": {"B": [2, 8], "T": [5, 4096], "D": [48, 1536]},
        "GRADIENTS": True,
    },
    "adaptive_instance_norm": {
        "INPUTS": {"x": "float32[B, C, H, W]", "scale": "float32[B, C]", "shift": "float32[B, C]"},
        "DIMS": {"B": [2, 16], "C": [3, 256], "H": [5, 64], "W": [6, 64]},
        "GRADIENTS": True,
    },
    "unpatchified": {
        "INPUTS": {"tokens": "bfloat16[B, H, W, 64]", "bias": "bfloat16[64]"},
        "DIMS": {"B": [2, 128], "H": [5, 64], "W": [6, 64]},
        "GRADIENTS": True,
    },
    "heun_step": {
        "INPUTS": {
            "x": "float32[B, 16, H, W]",
            "velocity": "bfloat16[B, 16, H, W]",
            "next_velocity": "bfloat16[B, 16, H, W]",
            "sigma": "float32[B] in 0..1",
            "next_sigma": "float32[B] in 0..1",
        },
        "DIMS": {"B": [2, 64], "H": [5, 128], "W": [6, 128]},
    },
    "min_snr_loss": {
        "INPUTS": {
            "prediction": "bfloat16[B, 16, H, W]",
            "noise": "bfloat16[B, 16, H, W]",
            "alpha": "float32[B] in 0.1..0.9",
        },
        "DIMS": {"B": [2, 128], "H": [5, 128], "W": [6, 128]},
        "GRADIENTS": True,
    },
    "positions_2d": {
        "INPUTS": {"rows": "float32[H] in 0..64", "columns": "float32[W] in 0..64"},
        "DIMS": {"H": [5, 256], "W": [6, 256]},
    },
}
