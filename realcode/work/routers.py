"""A mixture of experts round its products."""

import torch


def load_balancing_loss(logits, chosen):
    """Share of tokens times mean probability, over experts. logits: [T, E], chosen: [T, K]."""
    experts = logits.shape[-1]
    probabilities = torch.softmax(logits.float(), dim=-1)
    numbers = torch.arange(experts, device=logits.device)
    assigned = (chosen.unsqueeze(-1) == numbers).any(dim=1).float()
    return experts * (assigned.mean(dim=0) * probabilities.mean(dim=0)).sum()


def router_probabilities(logits, bias):
    """Probabilities of the experts, and the loss on their logarithm. logits: [T, E], bias: [E]."""
    wide = logits.float() + bias
    log_sum = torch.logsumexp(wide, dim=-1)
    return torch.exp(wide - log_sum.unsqueeze(-1)).to(logits.dtype), 0.001 * log_sum.square().mean()


def combined_experts(outputs, weight, residual):
    """The chosen experts' outputs by normalised weights. outputs: [T, 2, D], weight: [T, 2], residual: [T, D]."""
    share = weight / weight.sum(dim=-1, keepdim=True)
    return residual + (outputs * share.unsqueeze(-1)).sum(dim=1)


CALLS = {
    "load_balancing_loss": {
        "INPUTS": {"logits": "bfloat16[T, E]", "chosen": "int64[T, 2] in 0..E"},
        "DIMS": {"T": [7, 262144], "E": [8, 64]},
        "GRADIENTS": True,
    },
    "router_probabilities": {
        "INPUTS": {"logits": "bfloat16[T, E]", "bias": "float32[E]"},
        "DIMS": {"T": [7, 262144], "E": [8, 128]},
        "GRADIENTS": True,
    },
    "combined_experts": {
        "INPUTS": {
            "outputs": "bfloat16[T, 2, D]",
            "weight": "bfloat16[T, 2] in 0.1..1",
            "residual": "bfloat16[T, D]",
        },
        "DIMS": {"T": [7, 8192], "D": [64, 4096]},
        "GRADIENTS": True,
    },
}
