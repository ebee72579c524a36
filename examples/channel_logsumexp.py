"""Log of summed exponentials over the middle dimension: a free energy for each batch item and channel."""

import torch

INPUTS = {"energies": "float32|bfloat16[B, S, H]"}
DIMS = {"B": [1, 3], "S": [1, 33, 500], "H": [1, 7, 64]}


def channel_logsumexp(energies: torch.Tensor) -> torch.Tensor:
    """energies: [B, S, H]. Returns [B, H]."""
    return torch.logsumexp(energies, dim=1)
