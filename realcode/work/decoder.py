"""A decoder's parts between its products, at the sizes of a model with 8 billion parameters."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    """x: [M, 4096]."""

    def __init__(self, width: int = 4096, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return normed.to(x.dtype) * self.weight


def qk_norm(q, k, q_weight, k_weight):
    """Queries and keys, normed within each head. q: [B, T, H, K], k: [B, T, G, K]."""

    def normed(x, weight):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(x.dtype)

    return normed(q, q_weight), normed(k, k_weight)


def rotary(q, k, cos, sin):
    """Rotates both halves of each head. q: [B, H, T, K], k: [B, G, T, K], cos and sin: [T, K]."""

    def rotated(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)

    return q * cos + rotated(q) * sin, k * cos + rotated(k) * sin


def swiglu(gate_up):
    """gate_up: [M, 2 * F], gate and up side by side."""
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up


def causal_softmax(scores, scale):
    """Attention weights. scores: [B, H, T, T]."""
    length = scores.shape[-1]
    rows = torch.arange(length, device=scores.device)
    masked = (scores * scale).masked_fill(rows[None, :] > rows[:, None], float("-inf"))
    return torch.softmax(masked, dim=-1, dtype=torch.float32).to(scores.dtype)


def kv_cache_update(cache, new, positions):
    """The cache with new keys at their positions. cache: [B, G, S, K], new: [B, G, T, K]."""
    return cache.index_copy(2, positions, new)


def processed_logits(logits, seen, temperature, penalty, softcap):
    """Soft cap, penalty on what was said, temperature, probabilities. logits: [B, V]."""
    capped = softcap * torch.tanh(logits.float() / softcap)
    punished = torch.where(capped > 0, capped / penalty, capped * penalty)
    return torch.softmax(torch.where(seen, punished, capped) / temperature, dim=-1)


CALLS = {
    "RMSNorm": {"INPUTS": {"x": "bfloat16[M, 4096]"}, "DIMS": {"M": [7, 8192]}, "GRADIENTS": True},
    "qk_norm": {
        "INPUTS": {
            "q": "bfloat16[B, T, H, 128]",
            "k": "bfloat16[B, T, G, 128]",
            "q_weight": "bfloat16[128]",
            "k_weight": "bfloat16[128]",
        },
        "DIMS": {"B": [1, 4], "T": [5, 2048], "H": [4, 32], "G": [2, 8]},
        "GRADIENTS": True,
    },
    "rotary": {
        "INPUTS": {
            "q": "bfloat16[B, H, T, 128]",
            "k": "bfloat16[B, G, T, 128]",
            "cos": "bfloat16[T, 128] in -1..1",
            "sin": "bfloat16[T, 128] in -1..1",
        },
        "DIMS": {"B": [1, 4], "T": [5, 2048], "H": [4, 32], "G": [2, 8]},
        "GRADIENTS": True,
    },
    "swiglu": {
        "INPUTS": {"gate_up": "bfloat16[M, 2*F]"},
        "DIMS": {"M": [7, 4096], "F": [33, 14336]},
        "GRADIENTS": True,
    },
    "causal_softmax": {
        "INPUTS": {"scores": "bfloat16[B, H, T, T]", "scale": 0.088},
        "DIMS": {"B": [1, 2], "H": [2, 16], "T": [17, 1024]},
        "GRADIENTS": True,
    },
    "kv_cache_update": {
        "INPUTS": {
            "cache": "bfloat16[B, G, S, 128]",
            "new": "bfloat16[B, G, 1, 128]",
            "positions": "int64[1] in 0..S",
        },
        "DIMS": {"B": [2, 16], "G": [2, 8], "S": [33, 4096]},
    },
    "processed_logits": {
        "INPUTS": {
            "logits": "bfloat16[B, V]",
            "seen": "bool[B, V]",
            "temperature": 0.7,
            "penalty": 1.2,
            "softcap": 30.0,
        },
        "DIMS": {"B": [3, 256], "V": [1000, 128256]},
    },
}
