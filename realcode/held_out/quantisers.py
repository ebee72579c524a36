"""Quantisers that pack, smooth, learn, or follow a norm."""

import torch


def packed_nibbles(weight):
    """Two codes in a byte, scale and zero for each 64 columns. weight: [M, 64 * G]."""
    rows = weight.shape[0]
    groups = weight.float().view(rows, -1, 64)
    low, high = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    scale = (high - low).clamp(min=1e-5) / 15
    codes = torch.round((groups - low) / scale).clamp(0, 15).to(torch.uint8).view(rows, -1)
    return codes[:, 0::2] | (codes[:, 1::2] << 4), scale.squeeze(-1), low.squeeze(-1)


def smoothed_int8(x, smoothing):
    """Columns are smoothed before rows are quantised. x: [M, D], smoothing: [D]."""
    smooth = x.float() / smoothing
    scale = smooth.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8) / 127
    return torch.round(smooth / scale).to(torch.int8), scale


def int8_columns(weight):
    """int8 with a scale for each column. weight: [M, N]."""
    wide = weight.float()
    scale = wide.abs().amax(dim=0).clamp(min=1e-8) / 127
    return torch.round(wide / scale).to(torch.int8), scale


def learned_step(x, step):
    """Rounded to a learned step, with gradients straight through. x: [M, D], step: [D]."""
    scaled = (x / step).clamp(-8, 7)
    rounded = scaled + (torch.round(scaled) - scaled).detach()
    return rounded * step


def normed_int8(x, residual, weight):
    """The residual sum, normed and quantised for the product that follows. x, residual: [M, D], weight: [D]."""
    total = x + residual
    wide = total.float()
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
    scale = normed.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
    return torch.round(normed / scale).to(torch.int8), scale, total


CALLS = {
    "packed_nibbles": {
        "INPUTS": {"weight": "bfloat16[M, 64*G]"},
        "DIMS": {"M": [7, 11008], "G": [2, 64]},
    },
    "smoothed_int8": {
        "INPUTS": {"x": "bfloat16[M, D]", "smoothing": "float32[D] in 0.5..2"},
        "DIMS": {"M": [7, 8192], "D": [64, 5120]},
    },
    "int8_columns": {"INPUTS": {"weight": "bfloat16[M, N]"}, "DIMS": {"M": [33, 4096], "N": [40, 11008]}},
    "learned_step": {
        "INPUTS": {"x": "float32[M, D]", "step": "float32[D] in 0.1..1"},
        "DIMS": {"M": [7, 8192], "D": [64, 2048]},
        "GRADIENTS": True,
    },
    "normed_int8": {
        "INPUTS": {"x": "bfloat16[M, D]", "residual": "bfloat16[M, D]", "weight": "bfloat16[D]"},
        "DIMS": {"M": [7, 8192], "D": [64, 5120]},
    },
}
