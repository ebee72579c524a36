"""GELU of a biased activation, the epilogue of a transformer's first feed-forward layer."""

import torch
import torch.nn.functional as F

INPUTS = {"x": "float32|bfloat16[M, N]", "bias": "float32|bfloat16[N]"}
DIMS = {"M": [1, 7, 64], "N": [1, 33, 1000]}


def gelu_bias(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x: [M, N]; bias: [N]. Returns [M, N]."""
    biased = x + bias
    return F.gelu(biased)
