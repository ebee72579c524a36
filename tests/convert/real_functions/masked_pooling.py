"""Sentence embeddings: the mean of the tokens that are no padding, at length one."""

import torch
import torch.nn.functional as F

INPUTS = {"token_embeddings": "float32|bfloat16[B, T, D]", "attention_mask": "int64[B, T] in 0..2"}
DIMS = {"B": [1, 3], "T": [1, 9], "D": [4, 33]}


def masked_pooling(token_embeddings: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """token_embeddings: [B, T, D]; attention_mask: [B, T] of 0 and 1. Returns [B, D]."""
    mask = attention_mask.unsqueeze(-1).expand(token_embeddings.size()).float()
    summed = torch.sum(token_embeddings * mask, 1)
    mean = summed / torch.clamp(mask.sum(1), min=1e-9)
    return F.normalize(mean, p=2, dim=1)
