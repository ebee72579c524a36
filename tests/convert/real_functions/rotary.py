"""Rotary position embedding of queries and keys, from cached angles."""

import torch

INPUTS = {
    "q": "float32|bfloat16|float16[B, H, T, 2 * D]",
    "k": "float32|bfloat16|float16[B, K, T, 2 * D]",
    "cos": "float32|bfloat16|float16[B, T, 2 * D] in -1.0..1.0",
    "sin": "float32|bfloat16|float16[B, T, 2 * D] in -1.0..1.0",
}
DIMS = {"B": [1, 2], "H": [1, 4], "K": [1, 2], "T": [1, 7], "D": [4, 5]}


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    """The second half of the last dimension, negated, before the first."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotary(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, unsqueeze_dim: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """q: [B, H, T, 2 D]; k: [B, K, T, 2 D]; cos, sin: [B, T, 2 D]. Returns q and k, turned."""
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
