"""A router's gates: the best experts of each token, renormalised, and how evenly they are used."""

import torch
import torch.nn.functional as F

INPUTS = {"hidden_states": "float32|bfloat16[T, D]", "router": "float32|bfloat16[6, D]"}
DIMS = {"T": [1, 9], "D": [8, 17]}


def top_k_gates(
    hidden_states: torch.Tensor, router: torch.Tensor, top_k: int = 2
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """hidden_states: [T, D]; router: [6, D]. Returns gates [T, 2], experts [T, 2] and one number."""
    num_experts = router.shape[0]
    router_logits = F.linear(hidden_states.float(), router.float())
    probs = F.softmax(router_logits, dim=-1)
    gates, experts = torch.topk(probs, top_k, dim=-1)
    gates = gates / gates.sum(dim=-1, keepdim=True)
    expert_mask = F.one_hot(experts, num_experts).float()
    balance = num_experts * (expert_mask.mean(dim=(0, 1)) * probs.mean(dim=0)).sum()
    return gates.to(hidden_states.dtype), experts, balance
