"""A problem as KernelBench writes it: Model, get_inputs and get_init_inputs, taken as it is."""

import torch
from torch import nn


class Model(nn.Module):
    """Hinge loss of each row against its target, smoothed by a sharpness."""

    def __init__(self, sharpness: float) -> None:
        super().__init__()
        self.sharpness = sharpness

    def forward(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """scores, targets: [M, N]. Returns [M]."""
        margin = 1.0 - scores * targets
        smooth = nn.functional.softplus(margin, beta=self.sharpness)
        return smooth.mean(dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 1000), torch.sign(torch.randn(64, 1000))]


def get_init_inputs() -> list[float]:
    return [4.0]
