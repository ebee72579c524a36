"""Causal self-attention with one projection for queries, keys and values."""

import torch
import torch.nn.functional as F
from torch import nn

INPUTS = {"x": "float32|bfloat16[B, T, 24]"}
DIMS = {"B": [1, 2], "T": [1, 5, 16]}


class CausalAttention(nn.Module):
    """x: [B, T, width], T at most `longest`. Returns [B, T, width]."""

    def __init__(self, width: int = 24, heads: int = 3, longest: int = 32) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.register_buffer("causal", torch.tril(torch.ones(longest, longest, dtype=torch.bool)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (k.size(-1) ** -0.5)
        att = att.masked_fill(~self.causal[:T, :T], float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)
