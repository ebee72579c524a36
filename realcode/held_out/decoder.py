"""A decoder's parts between its products, at the sizes of models with 7 to 20 billion parameters."""

import torch
import torch.nn.functional as F
from torch import nn


class AddedRMSNorm(nn.Module):
    """The residual sum and its norm, with a weight round zero. x, residual: [M, 3072]."""

    def __init__(self, width: int = 3072, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        wide = total.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (normed * (1.0 + self.weight.float())).to(x.dtype), total


def rotary_pairs(x, angles):
    """Rotates neighbouring pairs in the first half of each head. x: [B, T, H, 128], angles: [T, 32]."""
    turned, kept = x[..., :64], x[..., 64:]
    pairs = turned.float().unflatten(-1, (32, 2))
    cos, sin = angles.cos()[None, :, None], angles.sin()[None, :, None]
    even, odd = pairs[..., 0], pairs[..., 1]
    rotated = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)
    return torch.cat((rotated.to(x.dtype), kept), dim=-1)


def clamped_swiglu(x, bias):
    """Interleaved gate and up, clamped. x: [M, 2 * F], bias: [2 * F]."""
    shifted = x + bias
    gate, up = shifted[..., ::2].clamp(max=7.0), shifted[..., 1::2].clamp(-7.0, 7.0)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


def squared_relu(x, gate):
    """x, gate: [M, F]."""
    return F.relu(x).square() * gate


def alibi_softmax(scores, slopes):
    """Attention weights that fall with distance. scores: [B, H, Q, K], slopes: [H]."""
    queries = torch.arange(scores.shape[-2], device=scores.device)
    keys = torch.arange(scores.shape[-1], device=scores.device)
    distance = (queries[:, None] - keys[None, :]).abs().float()
    return torch.softmax(scores.float() - slopes[:, None, None] * distance, dim=-1).to(scores.dtype)


def windowed_softmax_with_sink(scores, sink):
    """Attention within 128 keys, with a learned logit that takes the rest. scores: [B, H, T, T], sink: [H]."""
    at = torch.arange(scores.shape[-1], device=scores.device)
    behind = at[:, None] - at[None, :]
    masked = scores.float().masked_fill((behind < 0) | (behind >= 128), float("-inf"))
    logit = sink.float().view(1, -1, 1, 1).expand(*masked.shape[:-1], 1)
    return torch.softmax(torch.cat((masked, logit), dim=-1), dim=-1)[..., :-1].to(scores.dtype)


def min_p_probabilities(logits, min_p):
    """Probabilities of the tokens that are not too unlikely. logits: [B, V]."""
    probabilities = torch.softmax(logits.float(), dim=-1)
    kept = probabilities >= min_p * probabilities.amax(dim=-1, keepdim=True)
    likely = torch.where(kept, probabilities, 0.0)
    return likely / likely.sum(dim=-1, keepdim=True)


CALLS = {
    "AddedRMSNorm": {
        "INPUTS": {"x": "bfloat16[M, 3072]", "residual": "bfloat16[M, 3072]"},
        "DIMS": {"M": [7, 16384]},
        "GRADIENTS": True,
    },
    "rotary_pairs": {
        "INPUTS": {"x": "bfloat16[B, T, H, 128]", "angles": "float32[T, 32]"},
        "DIMS": {"B": [2, 8], "T": [5, 1024], "H": [3, 32]},
        "GRADIENTS": True,
    },
    "clamped_swiglu": {
        "INPUTS": {"x": "bfloat16[M, 2*F]", "bias": "bfloat16[2*F]"},
        "DIMS": {"M": [7, 16384], "F": [33, 2880]},
        "GRADIENTS": True,
    },
    "squared_relu": {
        "INPUTS": {"x": "bfloat16[M, F]", "gate": "bfloat16[M, F]"},
        "DIMS": {"M": [7, 4096], "F": [33, 11008]},
        "GRADIENTS": True,
    },
    "alibi_softmax": {
        "INPUTS": {"scores": "bfloat16[B, H, Q, K]", "slopes": "float32[H] in 0.01..1"},
        "DIMS": {"B": [2, 4], "H": [3, 16], "Q": [5, 512], "K": [9, 1024]},
        "GRADIENTS": True,
    },
    "windowed_softmax_with_sink": {
        "INPUTS": {"scores": "bfloat16[B, H, T, T]", "sink": "bfloat16[H]"},
        "DIMS": {"B": [1, 2], "H": [2, 16], "T": [150, 1024]},
        "GRADIENTS": True,
    },
    "min_p_probabilities": {
        "INPUTS": {"logits": "bfloat16[B, V]", "min_p": 0.05},
        "DIMS": {"B": [3, 256], "V": [1000, 151936]},
    },
}
