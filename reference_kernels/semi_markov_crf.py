"""Semi-Markov CRF: score[b] = log sum over segmentations of exp(sum over segments of edge[b, m, k, c, d]).

edge is [B, N, K, C, C], lengths is [B] in 0..N, score is float32 [B]. A segmentation cuts lengths[b] steps
into segments of 1 to K steps and gives each boundary between two of them, and both ends, one of C labels. A
segment that starts at step m with label d, and ends k + 1 steps later with label c, adds edge[b, m, k, c, d];
Sarawagi and Cohen, 2004. K = 1 is the linear chain. With viterbi the maximum takes the place of log sum exp:
the best segmentation's score. (Where slot k means k steps and slot 0 nothing, pass edge[:, :, 1:].)

alpha[n, c] is the score of all that leads from the start to label c at step n, beta[n, d] of all that leads
from label d at step n to the end, step L:
    alpha[0, c] = 0,  alpha[n, c] = log sum_kd exp(alpha[n - 1 - k, d] + edge[n - 1 - k, k, c, d]),
    beta[L, d] = 0,   beta[n, d] = log sum_kc exp(beta[n + 1 + k, c] + edge[n, k, c, d]),
    score = log sum_c exp(alpha[L, c]),
    dscore / dedge[m, k, c, d] = exp(alpha[m, d] + edge[m, k, c, d] + beta[m + 1 + k, c] - score).
The last line is the segment's probability. Where a gradient will be wanted, one launch of twice as many
programs computes alpha and beta at the same time, and the gradient itself is one parallel pass that reads
edge and writes dedge. With viterbi the gradient is 1 on the segments of the best segmentation, found by
walking back along alpha, and 0 elsewhere; of equals the shortest last segment wins, then the first label.

alpha and beta grow with the sequence, so they are float64; only their differences from a level that moves
along are rounded to float32, in which exponentials are taken. Scores beyond some 1e9, though, leave float64
too few digits for probabilities. -inf in edge forbids a segment; where it leaves no segmentation at all,
score is -inf and its gradient 0. The steps of a sequence follow each other in one program, so it takes some
hundred sequences to fill a GPU.

Technique: sequential scans whose past lies in memory, behind barriers, with the next loads always under way.
Topics: reductions, masks, fusion and precision, pipelining and persistence, debugging, backward.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "edge": "float32|bfloat16|float16[B, N, K, C, C] in -8..8",
    "lengths": "int64|int32[B] in 0..N+1",
    "viterbi": False,
}
DIMS = {"B": [1, 3], "N": [1, 6, 20], "K": [1, 4, 40], "C": [1, 3, 12]}
REQUIRES = ["K >= 1", "C >= 1", "C <= 64"]

# Edges that a program takes at a time: a block of durations, with all pairs of labels.
SCAN_TILE = 8192
GRADIENT_TILE = 4096


def reference(edge: torch.Tensor, lengths: torch.Tensor, *, viterbi: bool) -> torch.Tensor:
    """edge: [B, N, K, C, C]; lengths: int64 or int32 [B]. Returns the scores, float32 [B]."""
    edge = edge.to(torch.promote_types(edge.dtype, torch.float32))
    n_batches, n_steps, n_durations, _, _ = edge.shape
    # What lies behind the end of a sequence has no part in it, not even NaN.
    starts = torch.arange(n_steps, device=edge.device)
    ends = starts[:, None] + torch.arange(1, n_durations + 1, device=edge.device)
    edge = edge.masked_fill((ends > lengths[:, None, None])[..., None, None], 0.0)
    # Zeros, which depend on edge even where there are no steps.
    alpha = [edge[:, :0].sum(dim=(1, 2, 3))]
    for n in range(1, n_steps + 1):
        # One [B, C, C] for each duration; side by side, they are [B, C, durations * C].
        arriving = [alpha[n - 1 - k][:, None, :] + edge[:, n - 1 - k, k] for k in range(min(n, n_durations))]
        alpha.append(total(torch.cat(arriving, dim=2), viterbi=viterbi))
    at_end = torch.stack(alpha, dim=1)[torch.arange(n_batches, device=edge.device), lengths.long()]
    return total(at_end, viterbi=viterbi)


def total(scores: torch.Tensor, *, viterbi: bool) -> torch.Tensor:
    """log sum exp along the last dimension, or with viterbi the maximum, its gradient the first's."""
    if viterbi:
        return scores.max(dim=-1).values
    # Where all is -inf, logsumexp's own gradient would be NaN.
    forbidden = (scores == -float("inf")).all(dim=-1)
    sums = scores.masked_fill(forbidden[..., None], 0.0).logsumexp(dim=-1)
    return sums.masked_fill(forbidden, -float("inf"))


@triton.jit
def zero_if_infinite(x):
    """x, but 0 where it is infinite: what can be subtracted from infinities without making NaN."""
    return tl.where(tl.abs(x) == float("inf"), 0.0, x)


@triton.jit
def zero_or_nan(x):
    """NaN where x is NaN, else 0: tl.max passes over NaN, so maxima get it added."""
    return tl.where(x == x, 0.0, x)


@triton.jit
def term(x):
    """exp(x), a term of a sum: in fewer instructions than tl.exp, since below 1e-38 it may be zero."""
    return tl.exp2(x * 1.4426950408889634)


@triton.jit
def total_score(scores, VITERBI: tl.constexpr):
    """scores: float64 [C]. Returns log sum exp of them, or their maximum, as a scalar."""
    highest = tl.max(scores, axis=0)
    if VITERBI:
        return highest + tl.sum(zero_or_nan(scores), axis=0)
    level = zero_if_infinite(highest)
    return level + tl.log(tl.sum(term((scores - level).to(tl.float32)), axis=0))


@triton.jit
def load_edges(
    edge_ptr, step, durations, length, n_durations, step_stride, duration_stride, label_offsets, label_mask
):
    """[BLOCK_C, BLOCK_K, BLOCK_C] edges of a scan's step, for these durations; -inf where there is none."""
    durations = durations[None, :, None]
    mask = (step <= length) & (durations < tl.minimum(step, n_durations)) & label_mask
    offsets = (step - 1) * step_stride + durations * duration_stride + label_offsets
    return tl.load(edge_ptr + offsets, mask=mask, other=-float("inf"))


@triton.jit
def scan(
    edge_ptr,
    scores_ptr,
    length,
    n_durations,
    n_labels,
    step_stride,
    duration_stride,
    end_label_stride,
    start_label_stride,
    score_stride,
    SUMMED: tl.constexpr,
    VITERBI: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Writes rows 1 to length of one sequence's alpha or beta, counted from the side where the scan starts.

    edge_ptr: to the edges of step 1 and its first duration, with the strides from there to those of the next
    step and of the next duration. scores_ptr: to row 0, n_labels zeros, with the stride to the next row.
    SUMMED: the labels that are summed over, 0 for those at segments' ends (beta), 1 for starts (alpha).

    A tile is [labels at ends, durations, labels at starts]. So laid out, the durations of a pair of labels
    are one thread's, and what is combined for every block of them needs no other thread.
    """
    labels = tl.arange(0, BLOCK_C).to(tl.int64)
    ends, starts = labels[:, None, None], labels[None, None, :]
    label_offsets = ends * end_label_stride + starts * start_label_stride
    label_mask = (ends < n_labels) & (starts < n_labels)
    summed_labels = starts if SUMMED == 1 else ends
    block = tl.arange(0, BLOCK_K).to(tl.int64)

    # What float32 sees is relative to this level, about the highest score of the step before.
    level = tl.full((), 0.0, tl.float64)
    edges = load_edges(
        edge_ptr, 1, block, length, n_durations, step_stride, duration_stride, label_offsets, label_mask
    )
    for step in tl.range(1, length + 1):
        # A maximum and a sum for each pair of labels, which are combined once a step, after the loop.
        lane_max = tl.full((BLOCK_C, BLOCK_C), -float("inf"), tl.float32)
        lane_sum = tl.zeros((BLOCK_C, BLOCK_C), tl.float32)
        for first in tl.range(0, n_durations, BLOCK_K):
            # Where the next edges lie depends on no score: they are under way while these are summed.
            is_last = first + BLOCK_K >= n_durations
            next_edges = load_edges(
                edge_ptr,
                tl.where(is_last, step + 1, step),
                tl.where(is_last, 0, first + BLOCK_K) + block,
                length,
                n_durations,
                step_stride,
                duration_stride,
                label_offsets,
                label_mask,
            )
            durations = (first + block)[None, :, None]
            mask = (durations < tl.minimum(step, n_durations)) & (summed_labels < n_labels)
            past_ptrs = scores_ptr + (step - 1 - durations) * score_stride + summed_labels
            past = (tl.load(past_ptrs, mask=mask, other=0.0) - level).to(tl.float32)
            scores = edges.to(tl.float32) + past
            new_max = tl.maximum(lane_max, tl.max(scores, axis=1))
            if VITERBI:
                lane_sum += tl.sum(zero_or_nan(scores), axis=1)
            else:
                shift = zero_if_infinite(new_max)
                lane_sum *= term(lane_max - shift)
                lane_sum += tl.sum(term(scores - tl.expand_dims(shift, 1)), axis=1)
            lane_max = new_max
            edges = next_edges

        highest = tl.max(lane_max, axis=SUMMED)
        if VITERBI:
            row = highest + tl.sum(lane_sum, axis=SUMMED)
        else:
            shift = zero_if_infinite(highest)
            lane_sum *= term(lane_max - tl.expand_dims(shift, SUMMED))
            row = shift + tl.log(tl.sum(lane_sum, axis=SUMMED))
        tl.store(scores_ptr + step * score_stride + labels, level + row, mask=labels < n_labels)
        level += zero_if_infinite(tl.max(highest, axis=0))
        # Other threads wrote what the next step reads.
        tl.debug_barrier()


@triton.jit
def semi_markov_crf_kernel(
    edge_ptr,
    lengths_ptr,
    score_ptr,
    alpha_ptr,
    beta_ptr,
    n_steps,
    n_durations,
    n_labels,
    edge_sequence_stride,
    edge_step_stride,
    edge_duration_stride,
    edge_end_stride,
    edge_start_stride,
    lengths_stride,
    VITERBI: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Program (b, 0) computes alpha and the score of sequence b, program (b, 1), if there is one, its beta.

    edge_ptr: [n_batches, n_steps, n_durations, n_labels, n_labels], any strides. lengths_ptr: [n_batches],
    elements lengths_stride apart. score_ptr: float32 [n_batches]. alpha_ptr, beta_ptr: float64 [n_batches,
    n_steps + 1, n_labels], contiguous, zeros at first. BLOCK_C >= n_labels.
    """
    sequence = tl.program_id(0).to(tl.int64)
    length = tl.load(lengths_ptr + sequence * lengths_stride).to(tl.int64)
    tl.device_assert((length >= 0) & (length <= n_steps), "length out of range")
    edge_ptr += sequence * edge_sequence_stride
    rows = sequence * (n_steps + 1)
    if tl.program_id(1) == 0:
        # The next longer segment that ends at a step starts one step earlier.
        scan(
            edge_ptr, alpha_ptr + rows * n_labels,
            length, n_durations, n_labels,
            edge_step_stride, edge_duration_stride - edge_step_stride, edge_end_stride, edge_start_stride,
            n_labels, SUMMED=1, VITERBI=VITERBI, BLOCK_K=BLOCK_K, BLOCK_C=BLOCK_C,
        )  # fmt: skip
        labels = tl.arange(0, BLOCK_C)
        last = tl.load(
            alpha_ptr + (rows + length) * n_labels + labels, mask=labels < n_labels, other=-float("inf")
        )
        tl.store(score_ptr + sequence, total_score(last, VITERBI))
    else:
        # From the end backwards; all segments that start at a step lie side by side.
        scan(
            edge_ptr + (length - 1) * edge_step_stride, beta_ptr + (rows + length) * n_labels,
            length, n_durations, n_labels,
            -edge_step_stride, edge_duration_stride, edge_end_stride, edge_start_stride,
            -n_labels, SUMMED=0, VITERBI=VITERBI, BLOCK_K=BLOCK_K, BLOCK_C=BLOCK_C,
        )  # fmt: skip


@triton.jit
def probabilities_kernel(
    dscore_ptr,
    edge_ptr,
    lengths_ptr,
    alpha_ptr,
    beta_ptr,
    dedge_ptr,
    n_steps,
    n_durations,
    n_labels,
    dscore_stride,
    edge_sequence_stride,
    edge_step_stride,
    edge_duration_stride,
    edge_end_stride,
    edge_start_stride,
    lengths_stride,
    BLOCK_K: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Program (i, j) computes the gradient of BLOCK_K durations' edges from the i-th step of all sequences.

    dscore_ptr, lengths_ptr: [n_batches], edge_ptr: [n_batches, n_steps, n_durations, n_labels, n_labels], any
    strides. alpha_ptr, beta_ptr: float64 [n_batches, n_steps + 1, n_labels], dedge_ptr: as edge, contiguous.
    """
    program = tl.program_id(0).to(tl.int64)
    sequence, step = program // n_steps, program % n_steps
    durations = tl.program_id(1).to(tl.int64) * BLOCK_K + tl.arange(0, BLOCK_K)
    labels = tl.arange(0, BLOCK_C).to(tl.int64)
    length = tl.load(lengths_ptr + sequence * lengths_stride).to(tl.int64)
    dscore = tl.load(dscore_ptr + sequence * dscore_stride)
    rows = sequence * (n_steps + 1)

    last_ptr = alpha_ptr + (rows + length) * n_labels + labels
    score = total_score(tl.load(last_ptr, mask=labels < n_labels, other=-float("inf")), VITERBI=False)
    # Of -inf there is no segmentation, and all probabilities below are exp(-inf); of inf they are NaN.
    score = tl.where(score == -float("inf"), 0.0, score + (score - score))
    alpha = tl.load(
        alpha_ptr + (rows + step) * n_labels + labels, mask=labels < n_labels, other=-float("inf")
    )
    ends = step + 1 + durations
    is_segment = (durations < n_durations) & (ends <= length)
    beta_ptrs = beta_ptr + (rows + ends)[:, None] * n_labels + labels[None, :]
    beta_mask = is_segment[:, None] & (labels < n_labels)[None, :]
    beta = tl.load(beta_ptrs, mask=beta_mask, other=-float("inf"))
    # Before and after may be large and cancel: their levels do so in float64, and the rest is small.
    alpha_level = zero_if_infinite(tl.max(alpha.to(tl.float32), axis=0)).to(tl.float64)
    beta_level = zero_if_infinite(tl.max(beta.to(tl.float32), axis=1)).to(tl.float64)
    before = (alpha - alpha_level).to(tl.float32)
    after = (beta - beta_level[:, None]).to(tl.float32)
    after += (alpha_level + beta_level - score).to(tl.float32)[:, None]

    label_mask = (labels < n_labels)[:, None] & (labels < n_labels)[None, :]
    label_offsets = labels[:, None] * edge_end_stride + labels[None, :] * edge_start_stride
    offsets = step * edge_step_stride + durations[:, None, None] * edge_duration_stride + label_offsets[None]
    mask = is_segment[:, None, None] & label_mask[None]
    edges = tl.load(edge_ptr + sequence * edge_sequence_stride + offsets, mask=mask, other=-float("inf"))
    probabilities = term(edges.to(tl.float32) + before[None, None, :] + after[:, :, None])

    labels_at = labels[:, None] * n_labels + labels[None, :]
    dedge_offsets = (program * n_durations + durations)[:, None, None] * n_labels * n_labels + labels_at[None]
    dedge_mask = (durations < n_durations)[:, None, None] & label_mask[None]
    dedge = tl.where(mask, dscore * probabilities, 0.0)
    tl.store(dedge_ptr + dedge_offsets, dedge, mask=dedge_mask)


@triton.jit
def best_path_kernel(
    dscore_ptr,
    edge_ptr,
    lengths_ptr,
    alpha_ptr,
    dedge_ptr,
    n_steps,
    n_durations,
    n_labels,
    dscore_stride,
    edge_sequence_stride,
    edge_step_stride,
    edge_duration_stride,
    edge_end_stride,
    edge_start_stride,
    lengths_stride,
    BLOCK: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """One program writes dscore to the segments of one sequence's best segmentation, the last one first.

    dscore_ptr, lengths_ptr: [n_batches], edge_ptr: [n_batches, n_steps, n_durations, n_labels, n_labels], any
    strides. alpha_ptr: float64 [n_batches, n_steps + 1, n_labels], dedge_ptr: as edge, contiguous, zeros.
    """
    sequence = tl.program_id(0).to(tl.int64)
    step = tl.load(lengths_ptr + sequence * lengths_stride).to(tl.int64)
    dscore = tl.load(dscore_ptr + sequence * dscore_stride)
    edge_ptr += sequence * edge_sequence_stride
    alpha_ptr += sequence * (n_steps + 1) * n_labels
    dedge_ptr += sequence * n_steps * n_durations * n_labels * n_labels

    labels = tl.arange(0, BLOCK_C)
    last = tl.load(alpha_ptr + step * n_labels + labels, mask=labels < n_labels, other=-float("inf"))
    label = tl.argmax(last, axis=0).to(tl.int64)
    while step > 0:
        # What could come last: a duration and the label at its start, all in one row.
        n_candidates = tl.minimum(step, n_durations) * n_labels
        best = tl.full((), -float("inf"), tl.float64)
        best_candidate = tl.full((), 0, tl.int64)
        for first in tl.range(0, n_candidates, BLOCK):
            candidates = first + tl.arange(0, BLOCK)
            durations, start_labels = candidates // n_labels, candidates % n_labels
            starts = step - 1 - durations
            mask = candidates < n_candidates
            offsets = starts * edge_step_stride + durations * edge_duration_stride
            offsets += label * edge_end_stride + start_labels * edge_start_stride
            edges = tl.load(edge_ptr + offsets, mask=mask, other=-float("inf")).to(tl.float64)
            alpha = tl.load(alpha_ptr + starts * n_labels + start_labels, mask=mask, other=0.0)
            block_best, lane = tl.max(alpha + edges, axis=0, return_indices=True)
            best_candidate = tl.where(block_best > best, first + lane, best_candidate)
            best = tl.maximum(block_best, best)
        duration, start_label = best_candidate // n_labels, best_candidate % n_labels
        step -= 1 + duration
        tl.store(
            dedge_ptr + ((step * n_durations + duration) * n_labels + label) * n_labels + start_label, dscore
        )
        label = start_label


def semi_markov_crf(
    edge: torch.Tensor, lengths: torch.Tensor, *, viterbi: bool, differentiable: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """edge: [B, N, K, C, C]; lengths: [B], any strides.

    Returns the scores, float32 [B], and alpha and beta, float64 [B, N + 1, C]; beta is empty if not needed.
    """
    n_batches, n_steps, n_durations, n_labels, _ = edge.shape
    score = torch.empty(n_batches, dtype=torch.float32, device=edge.device)
    # Zeros: both recurrences start with them, and what lies behind a sequence's end stays defined.
    alpha = torch.zeros((n_batches, n_steps + 1, n_labels), dtype=torch.float64, device=edge.device)
    both_ways = differentiable and not viterbi
    beta = torch.zeros_like(alpha) if both_ways else alpha.new_empty(0)
    if n_batches > 0:
        blocks = blocks_of(n_durations, n_labels, SCAN_TILE)
        semi_markov_crf_kernel[(n_batches, 1 + both_ways)](
            edge, lengths, score, alpha, beta, n_steps, n_durations, n_labels,
            *edge.stride(), lengths.stride(0), viterbi, **blocks,
        )  # fmt: skip
    return score, alpha, beta


def semi_markov_crf_backward(
    dscore: torch.Tensor,
    edge: torch.Tensor,
    lengths: torch.Tensor,
    alpha: torch.Tensor,
    beta: torch.Tensor,
    *,
    viterbi: bool,
) -> torch.Tensor:
    """dscore: [B]; edge: [B, N, K, C, C]; lengths: [B], any strides. Returns edge's gradient, contiguous."""
    n_batches, n_steps, n_durations, n_labels, _ = edge.shape
    make = torch.zeros if viterbi else torch.empty
    dedge = make(edge.shape, dtype=edge.dtype, device=edge.device)
    if dedge.numel() == 0:
        return dedge
    sizes = (n_steps, n_durations, n_labels)
    strides = (dscore.stride(0), *edge.stride(), lengths.stride(0))
    if viterbi:
        BLOCK_C = triton.next_power_of_2(n_labels)
        best_path_kernel[(n_batches,)](
            dscore, edge, lengths, alpha, dedge, *sizes, *strides, BLOCK=1024, BLOCK_C=BLOCK_C
        )
    else:
        blocks = blocks_of(n_durations, n_labels, GRADIENT_TILE)
        grid = (n_batches * n_steps, triton.cdiv(n_durations, blocks["BLOCK_K"]))
        probabilities_kernel[grid](dscore, edge, lengths, alpha, beta, dedge, *sizes, *strides, **blocks)
    return dedge


def blocks_of(n_durations: int, n_labels: int, tile: int) -> dict[str, int]:
    """All pairs of labels, as many durations as fit into the tile, and 16 edges for each thread."""
    BLOCK_C = triton.next_power_of_2(n_labels)
    BLOCK_K = min(triton.next_power_of_2(n_durations), max(1, tile // BLOCK_C**2))
    num_warps = min(max(BLOCK_K * BLOCK_C**2 // 512, 1), 16)
    return {"BLOCK_K": BLOCK_K, "BLOCK_C": BLOCK_C, "num_warps": num_warps}


def save_for_backward(ctx, inputs, keyword_only_inputs, output):
    """Keeps alpha and beta, from which each segment's probability follows at once."""
    ctx.viterbi = keyword_only_inputs["viterbi"]
    _, alpha, beta = output
    ctx.mark_non_differentiable(alpha, beta)
    # Else zeros would be written for the gradients of both.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs, alpha, beta)


@torch.autograd.function.once_differentiable
def backward(ctx, dscore, *_):
    """The gradients of edge and lengths, as autograd asks for them; only edge has one."""
    if dscore is None:
        return None, None
    gradient = torch.ops.reference_kernels.semi_markov_crf_backward
    return gradient(dscore, *ctx.saved_tensors, viterbi=ctx.viterbi), None


def fake_semi_markov_crf(edge, lengths, *, viterbi, differentiable):
    """Shapes and dtypes alone, of what semi_markov_crf returns."""
    n_batches, n_steps, _, n_labels, _ = edge.shape
    alpha = edge.new_empty((n_batches, n_steps + 1, n_labels), dtype=torch.float64)
    beta = torch.empty_like(alpha) if differentiable and not viterbi else alpha.new_empty(0)
    return edge.new_empty(n_batches, dtype=torch.float32), alpha, beta


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define(
    "semi_markov_crf(Tensor edge, Tensor lengths, *, bool viterbi, bool differentiable)"
    " -> (Tensor, Tensor, Tensor)"
)
library.define(
    "semi_markov_crf_backward(Tensor dscore, Tensor edge, Tensor lengths, Tensor alpha, Tensor beta,"
    " *, bool viterbi) -> Tensor"
)
library.impl("semi_markov_crf", semi_markov_crf, "CompositeExplicitAutograd")
library.impl("semi_markov_crf_backward", semi_markov_crf_backward, "CompositeExplicitAutograd")
SEMI_MARKOV_CRF = "reference_kernels::semi_markov_crf"
SEMI_MARKOV_CRF_BACKWARD = "reference_kernels::semi_markov_crf_backward"
torch.library.register_fake(SEMI_MARKOV_CRF, fake_semi_markov_crf, lib=library)
torch.library.register_fake(
    SEMI_MARKOV_CRF_BACKWARD,
    lambda dscore, edge, lengths, alpha, beta, *, viterbi: edge.new_empty(edge.shape),
    lib=library,
)
torch.library.register_autograd(SEMI_MARKOV_CRF, backward, setup_context=save_for_backward, lib=library)


def run(edge: torch.Tensor, lengths: torch.Tensor, *, viterbi: bool) -> torch.Tensor:
    """edge: [B, N, K, C, C]; lengths: int64 or int32 [B], any strides. Returns the scores, float32 [B]."""
    score, _, _ = torch.ops.reference_kernels.semi_markov_crf(
        edge, lengths, viterbi=viterbi, differentiable=edge.requires_grad and torch.is_grad_enabled()
    )
    return score
