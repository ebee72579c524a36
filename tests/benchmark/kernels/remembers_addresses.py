"""Cheats: remembers the result by the address of its input."""

import torch
from honest_softmax import DIMS, INPUTS, launch, reference

__all__ = ["DIMS", "INPUTS", "reference", "run"]


KNOWN: dict[int, torch.Tensor] = {}


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], contiguous. Returns [M, N], perhaps of another x."""
    if x.data_ptr() not in KNOWN:
        KNOWN[x.data_ptr()] = launch(x)
    return KNOWN[x.data_ptr()]
