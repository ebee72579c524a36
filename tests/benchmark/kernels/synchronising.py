"""Honest, but its wrapper looks at a value on the host before it launches."""

import torch
from honest_softmax import DIMS, INPUTS, launch, reference

__all__ = ["DIMS", "INPUTS", "reference", "run"]


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], contiguous. Returns [M, N]."""
    if x[0, 0].item() > 1e30:
        raise ValueError("too large")
    return launch(x)
