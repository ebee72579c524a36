"""Symmetric int8 quantisation of each row."""

import torch

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7], "N": [1, 33, 130]}


def quantise(x: torch.Tensor, bits: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [M, N]. Returns int8 [M, N] and float32 scales [M, 1]."""
    qmax = 2 ** (bits - 1) - 1
    scale = x.float().abs().amax(dim=-1, keepdim=True).clamp(min=1e-5) / qmax
    q = torch.clamp(torch.round(x.float() / scale), min=-qmax - 1, max=qmax)
    return q.to(torch.int8), scale
