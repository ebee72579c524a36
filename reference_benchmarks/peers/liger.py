"""liger-kernel's functions under the signatures of the reference kernels (tried with 0.8.5)."""

import torch
from liger_kernel.transformers import functional


def softmax(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N]."""
    return functional.liger_softmax(x)


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w, b: [N]. Returns [M, N]."""
    return functional.liger_layer_norm(x, w, b, eps)


def rms_norm(x: torch.Tensor, residual: None, w: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w: [N]. Returns [M, N]."""
    return functional.liger_rms_norm(x, w, eps)


def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a, b: [M, N]. Returns [M, N]."""
    return functional.liger_swiglu(a, b)


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, label_smoothing: float
) -> torch.Tensor:
    """logits: [M, V]; target: [M]. Returns []. Writes the gradient over the logits, so it gets a copy."""
    logits = logits.clone() if logits.requires_grad else logits
    return functional.liger_cross_entropy(
        logits, target, ignore_index=ignore_index, label_smoothing=label_smoothing
    )
