"""Cheats: works on a stream of its own, which the events on the current one do not see."""

import torch
from honest_softmax import DIMS, INPUTS, launch, reference

__all__ = ["DIMS", "INPUTS", "reference", "run"]


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], contiguous. Returns [M, N], not yet written."""
    with torch.cuda.stream(torch.cuda.Stream()):
        return launch(x)
