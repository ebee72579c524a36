"""Layer normalisation whose scale, shift and gate come from a condition."""

import torch
import torch.nn.functional as F
from torch import nn

INPUTS = {"x": "float32|bfloat16[B, T, 18]", "condition": "float32|bfloat16[B, 12]"}
DIMS = {"B": [1, 3], "T": [1, 7]}


def modulate(x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """x: [B, T, width]; shift, scale: [B, width]."""
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class AdaptiveNorm(nn.Module):
    """x: [B, T, width]; condition: [B, condition_width]. Returns [B, T, width]."""

    def __init__(self, width: int = 18, condition_width: int = 12) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(condition_width, 3 * width, bias=True))

    def forward(self, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        shift, scale, gate = self.modulation(condition).chunk(3, dim=1)
        h = modulate(self.norm(x), shift, scale)
        return x + gate.unsqueeze(1) * F.gelu(h, approximate="tanh")
