"""Dice loss of a segmentation into classes."""

import torch
import torch.nn.functional as F

INPUTS = {"logits": "float32|bfloat16[B, 5, H, W]", "target": "int64[B, H, W] in 0..5"}
DIMS = {"B": [1, 2], "H": [1, 7], "W": [3, 8]}


def dice_loss(logits: torch.Tensor, target: torch.Tensor, smooth: float = 1.0) -> torch.Tensor:
    """logits: [B, 5, H, W]; target: [B, H, W], classes. Returns one number."""
    probs = logits.softmax(dim=1)
    one_hot = F.one_hot(target, num_classes=logits.shape[1]).permute(0, 3, 1, 2).to(probs.dtype)
    dims = (0, 2, 3)
    intersection = torch.sum(probs * one_hot, dims)
    cardinality = torch.sum(probs + one_hot, dims)
    return 1 - ((2.0 * intersection + smooth) / (cardinality + smooth)).mean()
