"""A diffusion model's parts: residual blocks of a U-Net, a transformer's modulation, the sampler."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class TimedGroupNorm(nn.Module):
    """Group norm, scale and shift by the time embedding, SiLU. x: [B, 320, H, W], embedding: [B, 640]."""

    def __init__(self, channels: int = 320, groups: int = 32) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels, eps=1e-5)

    def forward(self, x: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        scale, shift = embedding[:, :, None, None].chunk(2, dim=1)
        return F.silu(self.norm(x) * (1 + scale) + shift)


def adaln(x, shift, scale):
    """Layer norm without weights, modulated for each sample. x: [B, T, D], shift and scale: [B, D]."""
    normed = F.layer_norm(x, (x.shape[-1],), eps=1e-6)
    return normed * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


def gated_residual(x, branch, gate):
    """x, branch: [B, T, D], gate: [B, D]."""
    return x + gate.unsqueeze(1) * branch


def geglu(x, bias):
    """x: [M, 2 * F], bias: [2 * F]."""
    value, gate = (x + bias).chunk(2, dim=-1)
    return value * F.gelu(gate)


def timestep_embedding(steps):
    """Sines and cosines of 512 frequencies. steps: [B]."""
    half = 512
    frequencies = torch.exp(
        -math.log(10000.0) * torch.arange(half, dtype=torch.float32, device=steps.device) / half
    )
    angles = steps[:, None].float() * frequencies[None]
    return torch.cat((torch.cos(angles), torch.sin(angles)), dim=-1)


def guided_ddim_step(x, with_text, without_text, alpha, previous_alpha, guidance):
    """One step of the sampler with guidance; x: [B, C, H, W], alpha and previous_alpha: [B]."""
    noise = without_text + guidance * (with_text - without_text)
    alpha, previous_alpha = alpha.view(-1, 1, 1, 1), previous_alpha.view(-1, 1, 1, 1)
    clean = ((x - (1 - alpha).sqrt() * noise) / alpha.sqrt()).clamp(-1, 1)
    return previous_alpha.sqrt() * clean + (1 - previous_alpha).sqrt() * noise


CALLS = {
    "TimedGroupNorm": {
        "INPUTS": {"x": "float32[B, 320, H, W]", "embedding": "float32[B, 640]"},
        "DIMS": {"B": [1, 16], "H": [5, 64], "W": [6, 64]},
        "GRADIENTS": True,
    },
    "adaln": {
        "INPUTS": {"x": "bfloat16[B, T, D]", "shift": "bfloat16[B, D]", "scale": "bfloat16[B, D]"},
        "DIMS": {"B": [2, 32], "T": [5, 1024], "D": [48, 1152]},
        "GRADIENTS": True,
    },
    "gated_residual": {
        "INPUTS": {"x": "bfloat16[B, T, D]", "branch": "bfloat16[B, T, D]", "gate": "bfloat16[B, D]"},
        "DIMS": {"B": [2, 32], "T": [5, 1024], "D": [48, 1152]},
        "GRADIENTS": True,
    },
    "geglu": {
        "INPUTS": {"x": "bfloat16[M, 2*F]", "bias": "bfloat16[2*F]"},
        "DIMS": {"M": [7, 8192], "F": [33, 5120]},
        "GRADIENTS": True,
    },
    "timestep_embedding": {"INPUTS": {"steps": "int64[B] in 0..1000"}, "DIMS": {"B": [5, 32768]}},
    "guided_ddim_step": {
        "INPUTS": {
            "x": "float32[B, 4, H, W]",
            "with_text": "float32[B, 4, H, W]",
            "without_text": "float32[B, 4, H, W]",
            "alpha": "float32[B] in 0.1..0.9",
            "previous_alpha": "float32[B] in 0.1..0.9",
            "guidance": 7.5,
        },
        "DIMS": {"B": [2, 256], "H": [5, 128], "W": [6, 128]},
    },
}
