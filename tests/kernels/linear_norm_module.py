"""A linear layer with batch normalisation as nn.Module, and candidates that take its state."""

import torch
from torch import nn


class Model(nn.Module):
    """x: [M, in_features]. Returns [M, out_features]."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.norm = nn.BatchNorm1d(out_features)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x))


class ModelNew(nn.Module):
    """The same with the same state_dict."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.norm = nn.BatchNorm1d(out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = self.norm.weight * torch.rsqrt(self.norm.running_var + self.norm.eps)
        return (self.linear(x) - self.norm.running_mean) * scale + self.norm.bias


class WithoutNorm(nn.Module):
    """Other keys in its state_dict."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.projection = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.projection(x)


def run(
    x: torch.Tensor,
    linear_weight: torch.Tensor,
    linear_bias: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    norm_running_mean: torch.Tensor,
    norm_running_var: torch.Tensor,
    norm_num_batches_tracked: torch.Tensor,
) -> torch.Tensor:
    """The same as a function of its state."""
    linear = x @ linear_weight.T + linear_bias
    return (linear - norm_running_mean) * torch.rsqrt(norm_running_var + 1e-5) * norm_weight + norm_bias


def forgets_the_bias(
    x: torch.Tensor,
    linear_weight: torch.Tensor,
    linear_bias: torch.Tensor,
    norm_weight: torch.Tensor,
    norm_bias: torch.Tensor,
    norm_running_mean: torch.Tensor,
    norm_running_var: torch.Tensor,
    norm_num_batches_tracked: torch.Tensor,
) -> torch.Tensor:
    """Wrong: the last bias, which is zero in a fresh module, is left out."""
    linear = x @ linear_weight.T + linear_bias
    return (linear - norm_running_mean) * torch.rsqrt(norm_running_var + 1e-5) * norm_weight


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(5, 6)]


def get_init_inputs() -> list[int]:
    return [6, 3]
