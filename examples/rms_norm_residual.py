"""Root mean square normalisation of a residual sum, which the next layer needs as well."""

import torch

INPUTS = {
    "x": "float32|bfloat16[M, N]",
    "residual": "float32|bfloat16[M, N]",
    "weight": "float32|bfloat16[N]",
    "eps": 1e-6,
}
DIMS = {"M": [1, 7, 64], "N": [1, 33, 1000]}


def rms_norm_residual(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, residual: [M, N]; weight: [N]. Returns the normalised sum and the sum, both [M, N]."""
    h = x + residual
    mean_square = h.float().pow(2).mean(dim=-1, keepdim=True)
    normed = h.float() * torch.rsqrt(mean_square + eps)
    return normed.to(x.dtype) * weight, h
