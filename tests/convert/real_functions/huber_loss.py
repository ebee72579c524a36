"""Huber loss with weights, beside PyTorch's own."""

import torch
import torch.nn.functional as F

INPUTS = {
    "pred": "float32|bfloat16[M, N]",
    "target": "float32|bfloat16[M, N]",
    "weight": "float32|bfloat16[M] in 0.0..1.0",
    "delta": 0.5,
}
DIMS = {"M": [1, 7], "N": [1, 33]}


def huber_loss(
    pred: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, delta: float = 1.0
) -> dict[str, torch.Tensor]:
    """pred, target: [M, N]; weight: [M]. Returns two numbers."""
    diff = (pred - target).abs()
    loss = torch.where(diff < delta, 0.5 * diff**2, delta * (diff - 0.5 * delta))
    weighted = (loss.mean(dim=1) * weight).sum() / weight.sum().clamp(min=1e-6)
    return {"weighted": weighted, "plain": F.smooth_l1_loss(pred, target, beta=0.25)}
