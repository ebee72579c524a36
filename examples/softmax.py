"""Softmax over the vocabulary with a temperature."""

import torch

INPUTS = {"logits": "float32|bfloat16[M, N]", "temperature": 0.7}
DIMS = {"M": [1, 7, 64], "N": [1, 33, 1000]}


def softmax(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """logits: [M, N]. Returns [M, N]; each row sums to one."""
    scaled = logits / temperature
    return torch.softmax(scaled, dim=-1)
