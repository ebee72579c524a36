"""Contrastive loss of paired images and texts: each finds its partner among all."""

import torch
import torch.nn.functional as F

INPUTS = {
    "image": "float32|bfloat16[B, D]",
    "text": "float32|bfloat16[B, D]",
    "logit_scale": "float32|bfloat16[] in 0.5..2.5",
}
DIMS = {"B": [1, 7, 16], "D": [8, 33]}


def contrastive_loss(image: torch.Tensor, text: torch.Tensor, logit_scale: torch.Tensor) -> torch.Tensor:
    """image, text: [B, D]; logit_scale: one number. Returns one number."""
    image = F.normalize(image, dim=-1)
    text = text / text.norm(p=2, dim=-1, keepdim=True)
    logits = logit_scale.exp() * image @ text.t()
    labels = torch.arange(logits.shape[0], device=logits.device)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
