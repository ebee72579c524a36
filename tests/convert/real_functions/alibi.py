"""Causal attention weights with a penalty that grows with the distance, steeper in each head."""

import torch

INPUTS = {"q": "float32|bfloat16[B, 4, T, D]", "k": "float32|bfloat16[B, 4, T, D]"}
DIMS = {"B": [1, 2], "T": [1, 7, 16], "D": [8, 17]}


def slopes(heads: int, device: torch.device) -> torch.Tensor:
    """A geometric series that starts with 2 ** (-8 / heads). Returns [heads]."""
    powers = torch.arange(1, heads + 1, device=device, dtype=torch.float32)
    return torch.pow(2.0, -8.0 * powers / heads)


def alibi(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """q, k: [B, 4, T, D]. Returns the weights [B, 4, T, T]."""
    heads, length = q.shape[1], q.shape[2]
    position = torch.arange(length, device=q.device)
    distance = position[None, :] - position[:, None]
    bias = slopes(heads, q.device)[:, None, None] * distance
    scores = torch.einsum("bhid,bhjd->bhij", q, k).float() * q.shape[-1] ** -0.5 + bias
    future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(diagonal=1)
    return scores.masked_fill(future, torch.finfo(scores.dtype).min).softmax(dim=-1).type_as(q)
