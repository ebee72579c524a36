"""A power spectrogram in decibels below its loudest frame."""

import torch

INPUTS = {"power": "float32|bfloat16[B, F, T] in 0.0..4.0"}
DIMS = {"B": [1, 3], "F": [4, 9], "T": [1, 17]}


def log_compression(power: torch.Tensor, ref: float = 1.0, amin: float = 1e-10) -> torch.Tensor:
    """power: [B, F, T], none negative. Returns [B, F, T]."""
    log_spec = 10.0 * torch.log10(power.float().clamp(min=amin))
    log_spec = log_spec - 10.0 * torch.log10(torch.tensor(max(amin, ref)))
    top = log_spec.flatten(1).max(dim=1).values[:, None, None]
    log_spec = torch.maximum(log_spec, top - 80.0)
    return ((log_spec + 4.0) / 4.0).to(power.dtype)
