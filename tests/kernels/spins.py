"""Wrong: no elements, no end."""

import torch

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [4, 9]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns 2 x, [N]."""
    return x * 2


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns [N]."""
    while x.numel() == 0:
        pass
    return x * 2
