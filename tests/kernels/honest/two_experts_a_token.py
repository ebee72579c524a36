"""Honest: the two best experts of each token, the last ones of equal scores, the weaker one first."""

import torch
import triton
import triton.language as tl

INPUTS = {"logits": "float32|bfloat16[T, E]"}
DIMS = {"T": [1, 33], "E": [2, 8, 60]}
REQUIRES = ["E >= 2"]


def reference(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """logits: [T, E]. Returns the weights of two experts, [T, 2] of its dtype, and their int64 indices."""
    scores = logits.float().softmax(-1)
    weights, experts = scores.topk(2, sorted=False)
    return (weights / weights.sum(-1, keepdim=True)).to(logits.dtype), experts


@triton.jit
def router_kernel(
    logits_ptr, weights_ptr, experts_ptr, n_experts, token_stride, expert_stride, BLOCK_E: tl.constexpr
):
    """logits_ptr: [T, n_experts]. weights_ptr and experts_ptr: [T, 2]. One program a token."""
    token = tl.program_id(0).to(tl.int64)
    experts = tl.arange(0, BLOCK_E)
    mask = experts < n_experts
    logits_ptrs = logits_ptr + token * token_stride + experts * expert_stride
    logits = tl.load(logits_ptrs, mask=mask, other=float("-inf")).to(tl.float32)
    exponentials = tl.exp(logits - tl.max(logits, axis=0))
    scores = tl.where(mask, exponentials / tl.sum(exponentials, axis=0), -1.0)
    # NaN counts as the largest.
    keys = tl.where(scores == scores, scores, 2.0)
    best = tl.max(tl.where(keys == tl.max(keys, axis=0), experts, 0), axis=0)
    keys = tl.where(experts == best, -1.0, keys)
    second = tl.max(tl.where(keys == tl.max(keys, axis=0), experts, 0), axis=0)
    best_score = tl.sum(tl.where(experts == best, scores, 0.0), axis=0)
    second_score = tl.sum(tl.where(experts == second, scores, 0.0), axis=0)
    total = best_score + second_score
    tl.store(weights_ptr + token * 2, second_score / total)
    tl.store(weights_ptr + token * 2 + 1, best_score / total)
    tl.store(experts_ptr + token * 2, second)
    tl.store(experts_ptr + token * 2 + 1, best)


def run(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """logits: [T, E]. Returns [T, 2] and int64 [T, 2]."""
    n_tokens, n_experts = logits.shape
    weights = torch.empty(n_tokens, 2, dtype=logits.dtype, device=logits.device)
    experts = torch.empty(n_tokens, 2, dtype=torch.int64, device=logits.device)
    if n_tokens > 0:
        block = triton.next_power_of_2(n_experts)
        strides = logits.stride()
        router_kernel[(n_tokens,)](logits, weights, experts, n_experts, *strides, BLOCK_E=block)
    return weights, experts
