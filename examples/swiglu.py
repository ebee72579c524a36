"""SwiGLU: one half of the last dimension gates the other."""

import torch
import torch.nn.functional as F

INPUTS = {"x": "float32|bfloat16[M, 2*H]"}
DIMS = {"M": [1, 7, 64], "H": [1, 33, 1000]}


def swiglu(x: torch.Tensor) -> torch.Tensor:
    """x: [M, 2*H], the gate in the first half. Returns [M, H]."""
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up
