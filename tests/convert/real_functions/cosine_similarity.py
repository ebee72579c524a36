"""Every query beside every key by their angle, and each pair's own."""

import torch
import torch.nn.functional as F

INPUTS = {"a": "float32|bfloat16|float16[M, D]", "b": "float32|bfloat16|float16[M, D]"}
DIMS = {"M": [1, 7], "D": [4, 33]}


def cosine_similarity(
    a: torch.Tensor, b: torch.Tensor, eps: float = 1e-8
) -> tuple[torch.Tensor, torch.Tensor]:
    """a, b: [M, D]. Returns [M] and [M, M]."""
    a_norm = a / a.float().norm(dim=-1, keepdim=True).clamp_min(eps)
    b_norm = b / b.float().norm(dim=-1, keepdim=True).clamp_min(eps)
    return F.cosine_similarity(a, b, dim=-1), (a_norm @ b_norm.mT).type_as(a)
