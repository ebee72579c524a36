"""One projection cut into a value and its gate."""

import torch
import torch.nn.functional as F

INPUTS = {
    "x": "float32|bfloat16[M, K]",
    "weight": "float32|bfloat16[2 * N, K]",
    "bias": "float32|bfloat16[2 * N]",
}
DIMS = {"M": [1, 7], "N": [1, 17], "K": [5, 32]}


def geglu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x: [M, K]; weight: [2 N, K]; bias: [2 N]. Returns [M, N]."""
    hidden, gate = F.linear(x, weight, bias).chunk(2, dim=-1)
    return hidden * F.gelu(gate)
