"""Cross entropy with smoothed labels, where padded positions do not count."""

import torch

INPUTS = {"logits": "float32|bfloat16[B, T, V]", "labels": "int64[B, T] in -1..V"}
DIMS = {"B": [1, 2], "T": [3, 7], "V": [2, 33]}


def label_smoothing(
    logits: torch.Tensor, labels: torch.Tensor, epsilon: float = 0.1, ignore_index: int = -1
) -> torch.Tensor:
    """logits: [B, T, V]; labels: [B, T], ignore_index where padded. Returns one number."""
    log_probs = -torch.log_softmax(logits.float(), dim=-1)
    labels = labels.unsqueeze(-1)
    padding_mask = labels.eq(ignore_index)
    labels = torch.clamp(labels, min=0)
    nll_loss = log_probs.gather(dim=-1, index=labels)
    smoothed_loss = log_probs.sum(dim=-1, keepdim=True)
    nll_loss = nll_loss.masked_fill(padding_mask, 0.0)
    smoothed_loss = smoothed_loss.masked_fill(padding_mask, 0.0)
    active = (~padding_mask).sum().clamp(min=1)
    return (1 - epsilon) * nll_loss.sum() / active + epsilon * smoothed_loss.sum() / (
        active * logits.shape[-1]
    )
