"""A state-space block round its scan."""

import torch
import torch.nn.functional as F


def gated_group_norm(x, gate, residual, weight):
    """RMS norm of four groups of gated columns, and the new residual. x, gate, residual: [B, T, D]."""
    total = x.float() + residual.float()
    gated = total * F.silu(gate.float())
    batch, length, width = gated.shape
    groups = gated.view(batch, length, 4, width // 4)
    normed = groups * torch.rsqrt(groups.pow(2).mean(-1, keepdim=True) + 1e-5)
    return (normed.view(batch, length, width) * weight.float()).to(x.dtype), total.to(x.dtype)


def short_convolution(x, weight, bias):
    """Each channel over its last four steps, then SiLU. x: [B, T, D], weight: [D, 4], bias: [D]."""
    length = x.shape[1]
    padded = F.pad(x, (0, 0, 3, 0))
    total = bias
    for tap in range(4):
        total = total + padded[:, tap : tap + length] * weight[:, tap]
    return F.silu(total)


def discretised(dt, dt_bias, a_log, x):
    """Steps, decays and weighted inputs of each head. dt: [B, T, H], x: [B, T, H, P]."""
    step = F.softplus(dt.float() + dt_bias)
    decay = torch.exp(-torch.exp(a_log) * step)
    return decay, (x.float() * step.unsqueeze(-1)).to(x.dtype)


def decoding_step(state, x, dt, a, b, c, d):
    """One token of a selective scan. state: [B, H, P, N], x: [B, H, P], dt: [B, H], b, c: [B, N]."""
    decay = torch.exp(dt * a)[:, :, None, None]
    added = (dt.unsqueeze(-1) * x).unsqueeze(-1) * b[:, None, None, :]
    state = state * decay + added
    return state, (state * c[:, None, None, :]).sum(-1) + d[:, None] * x


CALLS = {
    "gated_group_norm": {
        "INPUTS": {
            "x": "bfloat16[B, T, 4*K]",
            "gate": "bfloat16[B, T, 4*K]",
            "residual": "bfloat16[B, T, 4*K]",
            "weight": "bfloat16[4*K]",
        },
        "DIMS": {"B": [1, 4], "T": [3, 2048], "K": [64, 1024]},
        "GRADIENTS": True,
    },
    "short_convolution": {
        "INPUTS": {"x": "bfloat16[B, T, D]", "weight": "bfloat16[D, 4]", "bias": "bfloat16[D]"},
        "DIMS": {"B": [2, 4], "T": [9, 2048], "D": [32, 4096]},
        "GRADIENTS": True,
    },
    "discretised": {
        "INPUTS": {
            "dt": "bfloat16[B, T, H]",
            "dt_bias": "float32[H]",
            "a_log": "float32[H] in 0..2",
            "x": "bfloat16[B, T, H, P]",
        },
        "DIMS": {"B": [2, 4], "T": [5, 2048], "H": [4, 64], "P": [16, 64]},
        "GRADIENTS": True,
    },
    "decoding_step": {
        "INPUTS": {
            "state": "float32[B, H, P, N]",
            "x": "float32[B, H, P]",
            "dt": "float32[B, H] in 0.001..0.1",
            "a": "float32[H] in -2..0",
            "b": "float32[B, N]",
            "c": "float32[B, N]",
            "d": "float32[H]",
        },
        "DIMS": {"B": [2, 64], "H": [4, 64], "P": [16, 64], "N": [8, 128]},
    },
}
