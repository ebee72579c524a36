"""Exponential moving average of weights, with a decay that grows over the first steps."""

import torch

INPUTS = {
    "average": "float32|bfloat16[M, N]",
    "weight": "float32|bfloat16[M, N]",
    "step": 7,
    "decay": 0.875,
}
DIMS = {"M": [1, 7], "N": [1, 33]}


@torch.no_grad()
def ema_step(
    average: torch.Tensor, weight: torch.Tensor, step: int, decay: float = 0.999
) -> tuple[torch.Tensor, torch.Tensor]:
    """average, weight: [M, N]. Returns the new average, and the largest change."""
    decay = min(decay, (1 + step) / (10 + step))
    updated = torch.lerp(average.float(), weight.float(), 1.0 - decay)
    drift = (updated - average).abs().max()
    return updated.to(average.dtype), drift
