"""Recurrent blocks round their scans: shifts, norms of heads, decays within a chunk."""

import torch
import torch.nn.functional as F
from torch import nn


class TokenShift(nn.Module):
    """Three mixtures of each token with the one before. x: [B, T, 2048]."""

    def __init__(self, width: int = 2048) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.full((3, width), 0.5, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        before = F.pad(x, (0, 0, 1, 0))[:, :-1]
        apart = before - x
        return x + apart * self.mix[0], x + apart * self.mix[1], x + apart * self.mix[2]


def head_norm_then_gate(x, gate, weight, bias):
    """Layer norm of each head, then the gate. x: [B, T, H, 64], gate: [B, T, H * 64], weight, bias: [H * 64]."""
    wide = x.float()
    centred = wide - wide.mean(-1, keepdim=True)
    normed = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 64e-5)
    return ((normed.flatten(2) * weight + bias) * F.silu(gate.float())).to(gate.dtype)


def chunk_decays(log_decay):
    """Decay from each step to each later one within a chunk of 64. log_decay: [B, C, H, 64]."""
    total = torch.cumsum(log_decay.float(), dim=-1)
    apart = total.unsqueeze(-1) - total.unsqueeze(-2)
    at = torch.arange(64, device=log_decay.device)
    return torch.exp(apart.masked_fill(at[:, None] < at[None, :], float("-inf")))


def unit_queries_and_keys(q, k, beta):
    """Both activated and of length one, keys by their strength. q, k: [B, T, H, 128], beta: [B, T, H]."""

    def unit(x):
        active = F.silu(x.float())
        return active * torch.rsqrt(active.square().sum(-1, keepdim=True) + 1e-6)

    return (unit(q) * 128**-0.5).to(q.dtype), (unit(k) * torch.sigmoid(beta.float()).unsqueeze(-1)).to(
        k.dtype
    )


CALLS = {
    "TokenShift": {
        "INPUTS": {"x": "bfloat16[B, T, 2048]"},
        "DIMS": {"B": [2, 8], "T": [5, 2048]},
        "GRADIENTS": True,
    },
    "head_norm_then_gate": {
        "INPUTS": {
            "x": "bfloat16[B, T, H, 64]",
            "gate": "bfloat16[B, T, 64*H]",
            "weight": "float32[64*H]",
            "bias": "float32[64*H]",
        },
        "DIMS": {"B": [2, 8], "T": [5, 2048], "H": [3, 32]},
        "GRADIENTS": True,
    },
    "chunk_decays": {
        "INPUTS": {"log_decay": "float32[B, C, H, 64] in -0.1..0"},
        "DIMS": {"B": [1, 4], "C": [3, 32], "H": [2, 32]},
        "GRADIENTS": True,
    },
    "unit_queries_and_keys": {
        "INPUTS": {"q": "bfloat16[B, T, H, 128]", "k": "bfloat16[B, T, H, 128]", "beta": "bfloat16[B, T, H]"},
        "DIMS": {"B": [2, 4], "T": [5, 4096], "H": [3, 16]},
        "GRADIENTS": True,
    },
}
