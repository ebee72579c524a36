"""Wrong: one element is refused, which is declared."""

import torch

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [1, 4, 9]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns 2 x, [N]."""
    return x * 2


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns [N]."""
    if x.numel() == 1:
        raise ValueError("one element is too few")
    return x * 2
