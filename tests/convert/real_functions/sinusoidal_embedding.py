"""Timesteps as cosines and sines, and a small network behind."""

import math

import torch
from torch import nn

INPUTS = {"timesteps": "int64[B] in 0..1000"}
DIMS = {"B": [1, 5, 8]}


def timestep_embedding(t: torch.Tensor, dim: int, max_period: int = 10000) -> torch.Tensor:
    """t: [B]. Returns [B, dim]."""
    half = dim // 2
    freqs = torch.exp(
        -math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32, device=t.device) / half
    )
    args = t[:, None].float() * freqs[None]
    embedding = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
    if dim % 2:
        embedding = torch.cat([embedding, torch.zeros_like(embedding[:, :1])], dim=-1)
    return embedding


class TimestepEmbedder(nn.Module):
    """timesteps: [B]. Returns [B, width]."""

    def __init__(self, width: int = 12, frequencies: int = 9) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(frequencies, width), nn.SiLU(), nn.Linear(width, width))
        self.frequencies = frequencies

    def forward(self, timesteps: torch.Tensor) -> torch.Tensor:
        return self.mlp(timestep_embedding(timesteps, self.frequencies))
