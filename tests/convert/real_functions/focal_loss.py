"""Focal loss of binary predictions."""

import torch
import torch.nn.functional as F

INPUTS = {"inputs": "float32|bfloat16[M, N]", "targets": "float32|bfloat16[M, N] in 0.0..1.0"}
DIMS = {"M": [1, 7], "N": [1, 33]}


def focal_loss(
    inputs: torch.Tensor,
    targets: torch.Tensor,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "mean",
) -> torch.Tensor:
    """inputs: [M, N], logits; targets: [M, N] in 0..1. Returns one number; [M, N] without a reduction."""
    p = torch.sigmoid(inputs)
    ce_loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    loss = ce_loss * ((1 - p_t) ** gamma)
    if alpha >= 0:
        alpha_t = alpha * targets + (1 - alpha) * (1 - targets)
        loss = alpha_t * loss
    if reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    return loss
