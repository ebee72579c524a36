"""RMSNorm as a module with a configuration: computed in float32, scaled in the dtype of its weight."""

from dataclasses import dataclass

import torch
from torch import nn

INPUTS = {"hidden_states": "float32|bfloat16|float16[B, T, 33]"}
DIMS = {"B": [1, 2], "T": [1, 7]}


@dataclass
class Config:
    """What a model's blocks are built from."""

    hidden_size: int = 33
    rms_norm_eps: float = 1e-6


class RMSNorm(nn.Module):
    """hidden_states: [B, T, hidden_size]. Returns [B, T, hidden_size]."""

    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        config = config or Config()
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.variance_epsilon = config.rms_norm_eps

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)
