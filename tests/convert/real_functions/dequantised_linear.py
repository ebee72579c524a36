"""A linear layer whose weights are int8 in groups, each with a scale and a zero point."""

import torch
import torch.nn.functional as F

INPUTS = {
    "x": "float32|bfloat16[M, 8 * G]",
    "qweight": "int8[N, 8 * G]",
    "scales": "float32|bfloat16[N, G] in 0.001..0.02",
    "zeros": "float32|bfloat16[N, G] in -4.0..4.0",
}
DIMS = {"M": [1, 7], "N": [3, 16], "G": [1, 3]}


def dequantised_linear(
    x: torch.Tensor, qweight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor, group_size: int = 8
) -> torch.Tensor:
    """x: [M, 8 G]; qweight: [N, 8 G]; scales, zeros: [N, G]. Returns [M, N]."""
    out_features, in_features = qweight.shape
    w = qweight.view(out_features, in_features // group_size, group_size).to(scales.dtype)
    w = (w - zeros.unsqueeze(-1)) * scales.unsqueeze(-1)
    return F.linear(x, w.reshape(out_features, in_features).to(x.dtype))
