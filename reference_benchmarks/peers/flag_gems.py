"""flag_gems' operators under the signatures of the reference kernels (tried with 5.0.2)."""

import torch
from flag_gems import ops


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [N]. Returns [N]."""
    return ops.add(x, y)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]."""
    return ops.softmax(x, -1)


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w, b: [N]. Returns [M, N]."""
    return ops.layer_norm(x, w.shape, w, b, eps)[0]


def argmax(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M]."""
    return ops.argmax(x, -1)


def column_sum(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [N]."""
    return ops.sum_dim(x, [0])


def cumulative_sum(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]."""
    return ops.cumsum(x, -1)


def split_k_matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x: [M, K]; w: [K, N]. Returns [M, N]."""
    return ops.mm(x, w)


persistent_matmul = split_k_matmul
