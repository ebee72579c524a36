"""Group normalisation and SiLU before a residual: the start of a diffusion model's block."""

import torch
import torch.nn.functional as F

INPUTS = {
    "x": "float32|bfloat16[B, 4 * C, H, W]",
    "weight": "float32|bfloat16[4 * C]",
    "bias": "float32|bfloat16[4 * C]",
    "shift": "float32|bfloat16[B, 4 * C]",
}
DIMS = {"B": [1, 2], "C": [1, 3], "H": [1, 5], "W": [4, 7]}


def group_norm_silu(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    shift: torch.Tensor,
    *,
    num_groups: int = 4,
    eps: float = 1e-6,
) -> torch.Tensor:
    """x: [B, 4 C, H, W]; weight, bias: [4 C]; shift: [B, 4 C]. Returns [B, 4 C, H, W]."""
    h = F.group_norm(x, num_groups, weight=weight, bias=bias, eps=eps)
    h = F.silu(h) + shift[:, :, None, None]
    return (x + h) / 2**0.5
