"""Cheats: lets the baselines' products run in other precision, and itself with them."""

import torch
from honest_softmax import DIMS, INPUTS, launch, reference

__all__ = ["DIMS", "INPUTS", "reference", "run"]


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], contiguous. Returns [M, N]."""
    torch.backends.cuda.matmul.allow_tf32 = True
    return launch(x)
