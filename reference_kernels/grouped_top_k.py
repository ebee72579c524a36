"""Group-limited choice of experts: out = the top_k experts of the n_chosen_groups best groups, with weights.

logits is [T, E] and bias [E]; E = n_groups * group size. A score is sigmoid(logits), and score + bias is what
experts are chosen by. A group counts with the sum of its two best; among the experts of the best groups the
top_k best are taken. Their weights are their scores without bias, divided by their sum, times scale. Returns
indices int64 [T, top_k], the best first, and weights float32 [T, top_k]. As in PyTorch, NaN counts as larger
than everything; of equals the first is taken. Source: DeepSeek-V3 Technical Report (2024), section 2.1.2.

A token's experts are one tile of groups by members, in the registers of one warp: no step waits for another
warp. What is compared are whole numbers in the order of the floats, which tell NaN, -inf and padding apart.

Technique: top k by repeated maxima of order-preserving integers, groups ranked by counting those before them.
Topics: tiles, masks, reductions, dynamic shapes.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "logits": "float32|bfloat16|float16[T, E]",
    "bias": "float32[E]",
    "n_groups": "G",
    "n_chosen_groups": "P",
    "top_k": "K",
}
DIMS = {"T": [1, 7, 64], "E": [16, 48, 256], "G": [1, 4, 8], "P": [1, 2, 4], "K": [1, 4, 8]}
REQUIRES = ["E % G == 0", "E >= 2*G", "P >= 1", "P <= G", "K >= 1", "K <= P * (E // G)"]

PADDING = tl.constexpr(-(2**31))


def reference(
    logits: torch.Tensor,
    bias: torch.Tensor,
    n_groups: int,
    n_chosen_groups: int,
    top_k: int,
    scale: float = 2.5,
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits: [T, E], bias: [E]. Returns int64 [T, top_k], in any order, and float32 [T, top_k]."""
    scores = logits.float().sigmoid()
    choice = scores + bias
    groups = choice.unflatten(-1, (n_groups, -1))
    group_scores = groups.topk(2, dim=-1).values.sum(-1)
    chosen = group_scores.topk(n_chosen_groups, dim=-1, sorted=False).indices
    is_chosen = torch.zeros_like(group_scores).scatter(1, chosen, 1.0)
    allowed = groups.masked_fill(is_chosen.unsqueeze(-1) == 0, float("-inf")).flatten(1)
    indices = allowed.topk(top_k, dim=-1, sorted=False).indices
    weights = scores.gather(1, indices)
    return indices, weights / (weights.sum(-1, keepdim=True) + 1e-20) * scale


@triton.jit
def ordered(x):
    """int32 in the order of float32: -inf, ..., -0.0 and 0.0 alike, ..., inf, NaN."""
    bits = (x + 0.0).to(tl.int32, bitcast=True)
    order = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return tl.where(x != x, 0x7FFFFFFF, order)


@triton.jit
def first_of_best(order, places, n_places, axis: tl.constexpr):
    """The smallest of places at which order is largest along the axis."""
    best = tl.max(order, axis=axis, keep_dims=True)
    return tl.min(tl.where(order == best, places, n_places), axis=axis, keep_dims=True)


@triton.jit
def grouped_top_k_kernel(
    logits_ptr,
    bias_ptr,
    index_ptr,
    weight_ptr,
    n_groups,
    group_size,
    n_chosen_groups,
    top_k,
    scale,
    logits_row_stride,
    logits_col_stride,
    bias_stride,
    BLOCK_G: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One program chooses a token's experts; BLOCK_G >= n_groups, BLOCK_S >= group_size, BLOCK_K >= top_k.

    logits_ptr: [n_tokens, n_groups * group_size] and bias_ptr: [n_groups * group_size], any strides.
    index_ptr: int64, weight_ptr: float32, both [n_tokens, top_k], contiguous.
    """
    token = tl.program_id(0).to(tl.int64)
    group = tl.arange(0, BLOCK_G)[:, None]
    member = tl.arange(0, BLOCK_S)[None, :]
    expert = group * group_size + member
    mask = (group < n_groups) & (member < group_size)
    logits_offset = token * logits_row_stride + expert.to(tl.int64) * logits_col_stride
    score = tl.sigmoid(tl.load(logits_ptr + logits_offset, mask=mask, other=0.0).to(tl.float32))
    choice = score + tl.load(bias_ptr + expert.to(tl.int64) * bias_stride, mask=mask, other=0.0)
    order = tl.where(mask, ordered(choice), PADDING)

    # A group's two best: the largest, and the largest but that one.
    is_best = member == first_of_best(order, member, BLOCK_S, axis=1)
    best = tl.sum(tl.where(is_best, choice, 0.0), axis=1)
    rest = tl.where(is_best, PADDING, order)
    is_second = member == first_of_best(rest, member, BLOCK_S, axis=1)
    group_score = best + tl.sum(tl.where(is_second, choice, 0.0), axis=1)

    # A group is chosen where fewer than n_chosen_groups come before it.
    place = tl.arange(0, BLOCK_G)
    group_order = tl.where(place < n_groups, ordered(group_score), PADDING)
    before = (group_order[None, :] > group_order[:, None]) | (
        (group_order[None, :] == group_order[:, None]) & (place[None, :] < place[:, None])
    )
    is_chosen = tl.sum(before.to(tl.int32), axis=1) < n_chosen_groups
    order = tl.where(is_chosen[:, None] & mask, order, PADDING)

    k_lane = tl.arange(0, BLOCK_K)
    weights = tl.zeros([BLOCK_K], tl.float32)
    indices = tl.zeros([BLOCK_K], tl.int32)
    n_experts = n_groups * group_size
    for k in range(top_k):
        of_group = first_of_best(order, expert, n_experts, axis=1)
        best_of_group = tl.max(order, axis=1, keep_dims=True)
        taken = first_of_best(best_of_group, of_group, n_experts, axis=0)
        is_taken = expert == taken
        weight = tl.sum(tl.sum(tl.where(is_taken & mask, score, 0.0), axis=1), axis=0)
        weights = tl.where(k_lane == k, weight, weights)
        indices = tl.where(k_lane == k, tl.sum(tl.sum(taken, axis=1), axis=0), indices)
        order = tl.where(is_taken, PADDING, order)

    total = tl.sum(weights, axis=0) + 1e-20
    offset = token * top_k + k_lane
    tl.store(index_ptr + offset, indices, mask=k_lane < top_k)
    tl.store(weight_ptr + offset, weights / total * scale, mask=k_lane < top_k)


def grouped_top_k(
    logits: torch.Tensor,
    bias: torch.Tensor,
    n_groups: int,
    n_chosen_groups: int,
    top_k: int,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits: [T, E], bias: [E], any strides. Returns int64 and float32 [T, top_k], contiguous."""
    n_tokens, n_experts = logits.shape
    group_size = n_experts // n_groups
    indices = torch.empty((n_tokens, top_k), dtype=torch.int64, device=logits.device)
    weights = torch.empty((n_tokens, top_k), dtype=torch.float32, device=logits.device)
    if n_tokens == 0:
        return indices, weights
    BLOCK_G = triton.next_power_of_2(n_groups)
    BLOCK_S = triton.next_power_of_2(group_size)
    grouped_top_k_kernel[(n_tokens,)](
        logits, bias, indices, weights, n_groups, group_size, n_chosen_groups, top_k, scale,
        logits.stride(0), logits.stride(1), bias.stride(0),
        BLOCK_G=BLOCK_G, BLOCK_S=BLOCK_S, BLOCK_K=triton.next_power_of_2(top_k),
        num_warps=max(1, min(BLOCK_G * BLOCK_S // 512, 8)),
    )  # fmt: skip
    return indices, weights


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define(
    "grouped_top_k(Tensor logits, Tensor bias, SymInt n_groups, SymInt n_chosen_groups, SymInt top_k, "
    "float scale) -> (Tensor, Tensor)"
)
library.impl("grouped_top_k", grouped_top_k, "CompositeExplicitAutograd")
torch.library.register_fake(
    "reference_kernels::grouped_top_k",
    lambda logits, bias, n_groups, n_chosen_groups, top_k, scale: (
        logits.new_empty((logits.shape[0], top_k), dtype=torch.int64),
        logits.new_empty((logits.shape[0], top_k), dtype=torch.float32),
    ),
    lib=library,
)


def run(
    logits: torch.Tensor,
    bias: torch.Tensor,
    n_groups: int,
    n_chosen_groups: int,
    top_k: int,
    scale: float = 2.5,
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits: [T, E], bias: [E], any strides. Returns int64 and float32 [T, top_k], contiguous."""
    return torch.ops.reference_kernels.grouped_top_k(logits, bias, n_groups, n_chosen_groups, top_k, scale)
