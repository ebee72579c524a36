"""The gated MLP of a language model."""

import torch
import torch.nn.functional as F
from torch import nn

INPUTS = {"x": "float32|bfloat16[B, T, 20]"}
DIMS = {"B": [1, 2], "T": [1, 7]}


class SwiGLU(nn.Module):
    """x: [B, T, width]. Returns [B, T, width]."""

    def __init__(self, width: int = 20, inner: int = 36) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
