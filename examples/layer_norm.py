"""Layer normalisation of the last dimension."""

import torch
import torch.nn.functional as F

INPUTS = {
    "x": "float32|bfloat16[M, N]",
    "weight": "float32|bfloat16[N]",
    "bias": "float32|bfloat16[N]",
    "eps": 1e-5,
}
DIMS = {"M": [1, 7, 64], "N": [1, 33, 1000]}


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """x: [M, N]; weight, bias: [N]. Returns [M, N]."""
    return F.layer_norm(x, weight.shape, weight, bias, eps)
