"""Attention bias by distance: near distances have a bucket each, far ones share."""

import math

import torch

INPUTS = {"table": "float32|bfloat16[8, H]", "scores": "float32|bfloat16[B, H, T, S]"}
DIMS = {"B": [1, 2], "H": [1, 3], "T": [1, 7], "S": [5, 16]}


def bucket_of(relative_position: torch.Tensor, num_buckets: int, max_distance: int) -> torch.Tensor:
    """Integers of any shape. Returns integers of 0 to num_buckets - 1."""
    num_buckets //= 2
    buckets = (relative_position > 0).to(torch.long) * num_buckets
    relative_position = torch.abs(relative_position)
    max_exact = num_buckets // 2
    is_small = relative_position < max_exact
    if_large = max_exact + (
        torch.log(relative_position.float() / max_exact)
        / math.log(max_distance / max_exact)
        * (num_buckets - max_exact)
    ).to(torch.long)
    if_large = torch.min(if_large, torch.full_like(if_large, num_buckets - 1))
    return buckets + torch.where(is_small, relative_position, if_large)


def relative_bias(table: torch.Tensor, scores: torch.Tensor, max_distance: int = 20) -> torch.Tensor:
    """table: [8, H]; scores: [B, H, T, S]. Returns [B, H, T, S]."""
    context = torch.arange(scores.shape[-2], dtype=torch.long, device=scores.device)[:, None]
    memory = torch.arange(scores.shape[-1], dtype=torch.long, device=scores.device)[None, :]
    bucket = bucket_of(memory - context, num_buckets=table.shape[0], max_distance=max_distance)
    values = table[bucket].permute([2, 0, 1]).unsqueeze(0)
    return scores + values
