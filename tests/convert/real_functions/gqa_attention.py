"""Attention whose key and value heads are each shared by several query heads."""

import math

import torch
import torch.nn.functional as F

INPUTS = {
    "q": "float32|bfloat16[B, 2 * K, T, D]",
    "k": "float32|bfloat16[B, K, S, D]",
    "v": "float32|bfloat16[B, K, S, D]",
    "mask": "float32|bfloat16[B, 1, T, S]",
}
DIMS = {"B": [1, 2], "K": [1, 2], "T": [1, 5], "S": [3, 9], "D": [8, 16]}


def repeat_kv(x: torch.Tensor, repeats: int) -> torch.Tensor:
    """[B, K, S, D] -> [B, K repeats, S, D]."""
    if repeats == 1:
        return x
    batch, heads, length, width = x.shape
    x = x[:, :, None, :, :].expand(batch, heads, repeats, length, width)
    return x.reshape(batch, heads * repeats, length, width)


def gqa_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, groups: int = 2
) -> torch.Tensor:
    """q: [B, 2 K, T, D]; k, v: [B, K, S, D]; mask: [B, 1, T, S], added. Returns [B, T, 2 K D]."""
    k = repeat_kv(k, groups)
    v = repeat_kv(v, groups)
    scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.size(-1))
    scores = scores + mask
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    out = torch.matmul(weights, v).transpose(1, 2).contiguous()
    return out.view(q.size(0), q.size(2), -1)
