"""Quantisers of activations and weights, and back."""

import torch


def int8_rows(x):
    """int8 with a scale for each row. x: [M, D]."""
    wide = x.float()
    scale = wide.abs().amax(dim=-1, keepdim=True).clamp(min=1e-8) / 127
    return torch.round(wide / scale).clamp(-128, 127).to(torch.int8), scale.squeeze(-1)


def float8_blocks(x):
    """float8 with a scale for each 128 columns. x: [M, D]."""
    rows, width = x.shape
    blocks = x.float().view(rows, width // 128, 128)
    scale = blocks.abs().amax(dim=-1, keepdim=True).clamp(min=1e-4) / 448
    return (blocks / scale).to(torch.float8_e4m3fn).view(rows, width), scale.squeeze(-1)


def dequantised_blocks(weight, scale):
    """weight: [M, D] of int8, scale: [M, D // 128]."""
    rows, width = weight.shape
    blocks = weight.view(rows, width // 128, 128).float() * scale.unsqueeze(-1)
    return blocks.view(rows, width).to(torch.bfloat16)


def dequantised_nibbles(packed, scale):
    """Two weights of 4 bits in a byte, the lower one first. packed: [M, D], scale: [M, D // 32]."""
    low = (packed & 15).to(torch.int32) - 8
    high = (packed >> 4).to(torch.int32) - 8
    weight = torch.stack((low, high), dim=-1).flatten(1)
    return (weight.view(packed.shape[0], -1, 64) * scale.unsqueeze(-1)).flatten(1).to(torch.bfloat16)


CALLS = {
    "int8_rows": {"INPUTS": {"x": "bfloat16[M, D]"}, "DIMS": {"M": [7, 8192], "D": [64, 4096]}},
    "float8_blocks": {
        "INPUTS": {"x": "bfloat16[M, 128*G]"},
        "DIMS": {"M": [7, 8192], "G": [2, 32]},
    },
    "dequantised_blocks": {
        "INPUTS": {"weight": "int8[M, 128*G] in -128..127", "scale": "float32[M, G] in 0.001..0.1"},
        "DIMS": {"M": [7, 14336], "G": [2, 32]},
    },
    "dequantised_nibbles": {
        "INPUTS": {"packed": "uint8[M, 32*G] in 0..255", "scale": "float32[M, G] in 0.001..0.1"},
        "DIMS": {"M": [7, 14336], "G": [2, 64]},
    },
}
