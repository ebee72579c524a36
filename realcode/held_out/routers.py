"""Mixtures of experts: scores, places, soft slots."""

import torch


def sigmoid_scores(logits, chosen, scaling):
    """Normalised weights of the chosen experts, and the share of each. logits: [T, E], chosen: [T, 8]."""
    scores = torch.sigmoid(logits.float())
    weight = scores.gather(1, chosen)
    return scaling * weight / (weight.sum(-1, keepdim=True) + 1e-20), (
        scores / scores.sum(-1, keepdim=True)
    ).mean(0)


def places_in_experts(expert):
    """How many earlier tokens went to the same one of 16 experts. expert: [T]."""
    assigned = (expert[:, None] == torch.arange(16, device=expert.device)).to(torch.int32)
    before = torch.cumsum(assigned, dim=0) - assigned
    return (before * assigned).sum(dim=1), assigned.sum(dim=0)


def soft_slots(logits, scale):
    """Dispatch over tokens and combination over slots. logits: [B, T, S], scale: [1]."""
    scaled = logits.float() * scale
    return torch.softmax(scaled, dim=1).to(logits.dtype), torch.softmax(scaled, dim=2).to(logits.dtype)


CALLS = {
    "sigmoid_scores": {
        "INPUTS": {"logits": "bfloat16[T, E]", "chosen": "int64[T, 8] in 0..E", "scaling": 2.5},
        "DIMS": {"T": [7, 131072], "E": [16, 256]},
        "GRADIENTS": True,
    },
    "places_in_experts": {"INPUTS": {"expert": "int64[T] in 0..16"}, "DIMS": {"T": [33, 1048576]}},
    "soft_slots": {
        "INPUTS": {"logits": "bfloat16[B, T, S]", "scale": "float32[1] in 0.5..2"},
        "DIMS": {"B": [2, 64], "T": [9, 1024], "S": [8, 512]},
        "GRADIENTS": True,
    },
}
