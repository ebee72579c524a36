"""Cross entropy of scores: loss = mean_m (1 - s) * nll(m, target[m]) + s * mean_v nll(m, v), where s is
label_smoothing, nll(m, v) = log(sum_w exp(logits[m, w])) - logits[m, v], and m a row whose target counts.

logits is [M, V], V up to hundreds of thousands; target is [M]; rows with target[m] == ignore_index do not
count. The result is one number in logits' dtype. The forward pass reads logits once, with a running maximum
and a sum rescaled to it (the online normaliser of Milakov and Gimelshein, 2018, arXiv:1805.02867); few long
rows are split among several programs. No probability goes to memory, only each row's maximum and the log of
its sum: apart, since rounding log-sum-exp to one float32 would cost a row of scores near 1000 four digits of
its loss. Everything is computed in float32 and rounded once; all sums have a fixed order. As in PyTorch, the
mean over no rows is NaN, and so is the loss of a row that holds NaN or +inf, but not of an ignored one. A
target that is no class makes the loss NaN; with TRITON_DEBUG=1 it is an error. float16 works too, where
PyTorch itself overflows: sums over a large vocabulary leave its range.

The gradient reads logits once more, ignored rows not at all, and writes once: dlogits[m, v] =
(softmax(logits[m])[v] - (1 - s) * (v == target[m]) - s / V) * dout / (number of rows that count).

Technique: an online normaliser in one pass, statistics of rows in place of probabilities, long rows split to
fill the GPU, a mean in two steps without atomics.
Topics: tiles, masks, reductions, fusion and precision, debugging, backward.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "logits": "float32|bfloat16[M, V]",
    "target": "int64[M] in -1..V",
    "ignore_index": -1,
    "label_smoothing": 0.1,
}
DIMS = {"M": [1, 7, 300], "V": [1, 7, 64, 1000, 20_000]}

# Programs to launch at least, where the rows are long enough: eight for each of an H200's multiprocessors.
PROGRAMS = 1024
# Elements of logits a program takes at a time: 16 for each thread.
TILE = 4096
# Rows, or parts of rows, whose statistics one program merges.
LOSS_ROWS = 256


def reference(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, label_smoothing: float
) -> torch.Tensor:
    """logits: [M, V]; target: [M], int64, classes or ignore_index. Returns [] in logits' dtype."""
    return torch.nn.functional.cross_entropy(
        logits, target, ignore_index=ignore_index, label_smoothing=label_smoothing
    )


@triton.jit
def term(x):
    """exp(x) in fewer instructions than tl.exp takes, since below 1e-38 it may be zero."""
    return tl.exp2(x * 1.4426950408889634)


@triton.jit
def cross_entropy_rows_kernel(
    logits_ptr,
    max_ptr,
    sum_ptr,
    total_ptr,
    n_rows,
    n_cols,
    cols_per_split,
    logits_row_stride,
    logits_col_stride,
    SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    LANES: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """One program reads cols_per_split columns of BLOCK_M rows, LANES * VECTOR columns at a time.

    logits_ptr: [n_rows, n_cols], any strides. max_ptr, sum_ptr, total_ptr: [n_rows, SPLITS], contiguous: of
    each row's share of columns the largest score, the sum of exp(score - largest) and the sum of scores.

    Each lane keeps statistics of its own over VECTOR neighbouring columns of every block, so the loop needs
    no barrier, and rescales a sum once for VECTOR exponentials.
    """
    program = tl.program_id(0)
    split = program % SPLITS
    rows = (program // SPLITS).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    first_col = split.to(tl.int64) * cols_per_split
    end_col = tl.minimum(first_col + cols_per_split, n_cols)
    row_ptrs = logits_ptr + rows[:, None, None] * logits_row_stride
    row_mask = (rows < n_rows)[:, None, None]
    lanes = tl.arange(0, LANES)[None, :, None] * VECTOR + tl.arange(0, VECTOR)[None, None, :]

    lane_max = tl.full((BLOCK_M, LANES), -float("inf"), tl.float32)
    lane_sum = tl.zeros((BLOCK_M, LANES), tl.float32)
    lane_total = tl.zeros((BLOCK_M, LANES), tl.float32)
    for start in tl.range(first_col, end_col, LANES * VECTOR):
        cols = start + lanes
        mask = row_mask & (cols < end_col)
        x = tl.load(row_ptrs + cols * logits_col_stride, mask=mask, other=-float("inf")).to(tl.float32)
        new_max = tl.maximum(lane_max, tl.max(x, axis=2))
        # -inf - -inf is NaN: a lane that has seen only -inf sums to zero instead.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        lane_sum = lane_sum * term(lane_max - shift) + tl.sum(term(x - shift[:, :, None]), axis=2)
        lane_total += tl.sum(tl.where(mask, x, 0.0), axis=2)
        lane_max = new_max

    block_max, block_sum = merged(lane_max, lane_sum)
    offsets = rows * SPLITS + split
    tl.store(max_ptr + offsets, block_max, mask=rows < n_rows)
    tl.store(sum_ptr + offsets, block_sum, mask=rows < n_rows)
    tl.store(total_ptr + offsets, tl.sum(lane_total, axis=1), mask=rows < n_rows)


@triton.jit
def merged(part_max, part_sum):
    """part_max, part_sum: [R, P], of P parts of R rows. Returns both for whole rows, [R]."""
    row_max = tl.max(part_max, axis=1)
    shift = tl.where(row_max == -float("inf"), 0.0, row_max)
    return row_max, tl.sum(part_sum * term(part_max - shift[:, None]), axis=1)


@triton.jit
def cross_entropy_losses_kernel(
    logits_ptr,
    target_ptr,
    max_ptr,
    sum_ptr,
    total_ptr,
    row_max_ptr,
    row_log_sum_ptr,
    loss_ptr,
    count_ptr,
    n_rows,
    n_cols,
    ignore_index,
    label_smoothing,
    logits_row_stride,
    logits_col_stride,
    target_stride,
    SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    """One program merges the statistics of BLOCK_M rows and adds up their losses.

    logits_ptr: [n_rows, n_cols], any strides. target_ptr: [n_rows], elements target_stride apart. max_ptr,
    sum_ptr, total_ptr: [n_rows, SPLITS], as cross_entropy_rows_kernel leaves them. row_max_ptr,
    row_log_sum_ptr: [n_rows]. loss_ptr, count_ptr: [n_programs], sum of the losses and number of the rows
    that count.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    row_mask = rows < n_rows
    parts = rows[:, None] * SPLITS + tl.arange(0, SPLITS)[None, :]
    part_max = tl.load(max_ptr + parts, mask=row_mask[:, None], other=0.0)
    part_sum = tl.load(sum_ptr + parts, mask=row_mask[:, None], other=0.0)
    total = tl.sum(tl.load(total_ptr + parts, mask=row_mask[:, None], other=0.0), axis=1)
    row_max, row_sum = merged(part_max, part_sum)
    row_log_sum = tl.log(row_sum)
    tl.store(row_max_ptr + rows, row_max, mask=row_mask)
    tl.store(row_log_sum_ptr + rows, row_log_sum, mask=row_mask)

    target = tl.load(target_ptr + rows * target_stride, mask=row_mask, other=ignore_index)
    counted = target != ignore_index
    in_range = (target >= 0) & (target < n_cols)
    tl.device_assert(in_range | (target == ignore_index), "target is neither a class nor ignore_index")
    logit_ptrs = logits_ptr + rows * logits_row_stride + target * logits_col_stride
    logit = tl.load(logit_ptrs, mask=row_mask & counted & in_range, other=float("nan")).to(tl.float32)
    # Without smoothing a score of -inf, which makes the mean infinite, must not count.
    smooth = tl.where(label_smoothing > 0, label_smoothing * (row_max - total / n_cols + row_log_sum), 0.0)
    loss = (1 - label_smoothing) * (row_max - logit + row_log_sum) + smooth
    tl.store(loss_ptr + tl.program_id(0), tl.sum(tl.where(counted, loss, 0.0), axis=0))
    tl.store(count_ptr + tl.program_id(0), tl.sum(counted.to(tl.float32), axis=0))


@triton.jit
def cross_entropy_mean_kernel(loss_ptr, count_ptr, out_ptr, total_count_ptr, n_parts, BLOCK: tl.constexpr):
    """One program divides the sum of loss_ptr [n_parts] by the sum of count_ptr [n_parts]: 0 / 0 is NaN."""
    loss = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n_parts, BLOCK):
        parts = start + tl.arange(0, BLOCK)
        loss += tl.load(loss_ptr + parts, mask=parts < n_parts, other=0.0)
        count += tl.load(count_ptr + parts, mask=parts < n_parts, other=0.0)
    total_count = tl.sum(count, axis=0)
    tl.store(out_ptr, tl.sum(loss, axis=0) / total_count)
    tl.store(total_count_ptr, total_count)


@triton.jit
def cross_entropy_backward_kernel(
    dout_ptr,
    logits_ptr,
    target_ptr,
    row_max_ptr,
    row_log_sum_ptr,
    count_ptr,
    dlogits_ptr,
    n_rows,
    n_cols,
    ignore_index,
    label_smoothing,
    logits_row_stride,
    logits_col_stride,
    target_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program computes a BLOCK_M x BLOCK_N block of the gradient.

    dout_ptr, count_ptr: one number each. logits_ptr: [n_rows, n_cols], any strides. target_ptr: [n_rows],
    elements target_stride apart. row_max_ptr, row_log_sum_ptr: [n_rows]. dlogits_ptr: [n_rows, n_cols],
    contiguous.
    """
    blocks_n = tl.cdiv(n_cols, BLOCK_N)
    rows = (tl.program_id(0) // blocks_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    first_col = (tl.program_id(0) % blocks_n).to(tl.int64) * BLOCK_N
    block = tl.arange(0, BLOCK_N)[None, :]
    cols = first_col + block
    target = tl.load(target_ptr + rows * target_stride, mask=rows < n_rows, other=ignore_index)
    counted = target != ignore_index
    row_max = tl.load(row_max_ptr + rows, mask=rows < n_rows, other=0.0)[:, None]
    row_log_sum = tl.load(row_log_sum_ptr + rows, mask=rows < n_rows, other=0.0)[:, None]
    scale = tl.where(counted, tl.load(dout_ptr).to(tl.float32) / tl.load(count_ptr), 0.0)[:, None]

    mask = (rows < n_rows)[:, None] & (cols < n_cols)
    # An ignored row is not read: -inf leaves it a gradient of 0, or NaN where it holds NaN.
    read = mask & counted[:, None]
    logits_ptrs = logits_ptr + rows[:, None] * logits_row_stride + cols * logits_col_stride
    x = tl.load(logits_ptrs, mask=read, other=-float("inf"), eviction_policy="evict_first").to(tl.float32)
    # Within the block 32 bits are enough to compare, in half the instructions.
    target_in_block = tl.minimum(tl.maximum(target - first_col, -1), BLOCK_N).to(tl.int32)[:, None]
    wanted = tl.where(block == target_in_block, 1 - label_smoothing, 0.0) + label_smoothing / n_cols
    dx = (term(x - row_max - row_log_sum) - wanted) * scale
    tl.store(dlogits_ptr + rows[:, None] * n_cols + cols, dx, mask=mask, cache_modifier=".cs")


def cross_entropy(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, label_smoothing: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """logits: [M, V]; target: [M]; any strides. Returns the loss [] in logits' dtype and, for the gradient,
    each row's maximum [M], the log of its sum of exp(score - maximum) [M], the number of rows that count [].
    """
    n_rows, n_cols = logits.shape
    BLOCK_M, BLOCK_N = blocks(n_cols)
    row_blocks, col_blocks = triton.cdiv(n_rows, BLOCK_M), triton.cdiv(n_cols, BLOCK_N)
    n_splits = min(col_blocks, triton.cdiv(PROGRAMS, max(row_blocks, 1)))
    n_splits = triton.next_power_of_2(max(n_splits, 1))
    loss_rows = max(LOSS_ROWS // n_splits, 1)
    n_parts = triton.cdiv(n_rows, loss_rows)

    def float32(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.float32, device=logits.device)

    loss, count = torch.empty((), dtype=logits.dtype, device=logits.device), float32()
    row_max, row_log_sum = float32(n_rows), float32(n_rows)
    part_loss, part_count = float32(n_parts), float32(n_parts)
    if n_rows > 0:
        statistics = float32(n_rows, n_splits), float32(n_rows, n_splits), float32(n_rows, n_splits)
        VECTOR = min(16 // logits.element_size(), BLOCK_N)
        cross_entropy_rows_kernel[(row_blocks * n_splits,)](
            logits,
            *statistics,
            n_rows,
            n_cols,
            triton.cdiv(col_blocks, n_splits) * BLOCK_N,
            *logits.stride(),
            SPLITS=n_splits,
            BLOCK_M=BLOCK_M,
            LANES=BLOCK_N // VECTOR,
            VECTOR=VECTOR,
            num_warps=8,
        )
        cross_entropy_losses_kernel[(n_parts,)](
            logits,
            target,
            *statistics,
            row_max,
            row_log_sum,
            part_loss,
            part_count,
            n_rows,
            n_cols,
            ignore_index,
            label_smoothing,
            *logits.stride(),
            target.stride(0),
            SPLITS=n_splits,
            BLOCK_M=loss_rows,
        )
    cross_entropy_mean_kernel[(1,)](part_loss, part_count, loss, count, n_parts, BLOCK=1024)
    return loss, row_max, row_log_sum, count


def cross_entropy_backward(
    dout: torch.Tensor,
    logits: torch.Tensor,
    target: torch.Tensor,
    row_max: torch.Tensor,
    row_log_sum: torch.Tensor,
    count: torch.Tensor,
    ignore_index: int,
    label_smoothing: float,
) -> torch.Tensor:
    """dout: []; the others as cross_entropy takes and returns them. Returns logits' gradient, contiguous."""
    n_rows, n_cols = logits.shape
    dlogits = torch.empty((n_rows, n_cols), dtype=logits.dtype, device=logits.device)
    if dlogits.numel() == 0:
        return dlogits
    BLOCK_M, BLOCK_N = blocks(n_cols)
    grid = (triton.cdiv(n_rows, BLOCK_M) * triton.cdiv(n_cols, BLOCK_N),)
    cross_entropy_backward_kernel[grid](
        dout,
        logits,
        target,
        row_max,
        row_log_sum,
        count,
        dlogits,
        n_rows,
        n_cols,
        ignore_index,
        label_smoothing,
        *logits.stride(),
        target.stride(0),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=8,
    )
    return dlogits


def blocks(n_cols: int) -> tuple[int, int]:
    """A block of TILE elements: as wide as a row where that is shorter."""
    BLOCK_N = min(TILE, triton.next_power_of_2(max(n_cols, 1)))
    return TILE // BLOCK_N, BLOCK_N


def save_for_backward(ctx, inputs, output):
    """Keeps logits, target and three numbers a row at most."""
    logits, target, ctx.ignore_index, ctx.label_smoothing = inputs
    _, row_max, row_log_sum, count = output
    ctx.save_for_backward(logits, target, row_max, row_log_sum, count)
    ctx.mark_non_differentiable(row_max, row_log_sum, count)
    ctx.set_materialize_grads(False)


@torch.autograd.function.once_differentiable
def backward(ctx, dout, *_):
    """logits' gradient, as autograd asks for it; it has none of its own."""
    if dout is None:
        return None, None, None, None
    dlogits = torch.ops.reference_kernels.cross_entropy_backward(
        dout, *ctx.saved_tensors, ctx.ignore_index, ctx.label_smoothing
    )
    return dlogits, None, None, None


class CrossEntropy(torch.autograd.Function):
    """cross_entropy without the dispatcher, which takes longer than the launch."""

    @staticmethod
    def forward(ctx, logits, target, ignore_index, label_smoothing):
        """What cross_entropy returns."""
        output = cross_entropy(logits, target, ignore_index, label_smoothing)
        save_for_backward(ctx, (logits, target, ignore_index, label_smoothing), output)
        return output

    backward = staticmethod(backward)


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define(
    "cross_entropy(Tensor logits, Tensor target, int ignore_index, float label_smoothing)"
    " -> (Tensor, Tensor, Tensor, Tensor)"
)
library.define(
    "cross_entropy_backward(Tensor dout, Tensor logits, Tensor target, Tensor row_max, Tensor row_log_sum,"
    " Tensor count, int ignore_index, float label_smoothing) -> Tensor"
)
library.impl("cross_entropy", cross_entropy, "CompositeExplicitAutograd")
library.impl("cross_entropy_backward", cross_entropy_backward, "CompositeExplicitAutograd")


@torch.library.register_fake("reference_kernels::cross_entropy", lib=library)
def cross_entropy_shapes(logits, target, ignore_index, label_smoothing):
    """The shapes and dtypes of what cross_entropy returns."""
    statistics = logits.new_empty(target.shape, dtype=torch.float32)
    count = logits.new_empty((), dtype=torch.float32)
    return logits.new_empty(()), statistics, torch.empty_like(statistics), count


torch.library.register_fake(
    "reference_kernels::cross_entropy_backward",
    lambda dout, logits, *_: logits.new_empty(logits.shape),
    lib=library,
)
torch.library.register_autograd(
    "reference_kernels::cross_entropy", backward, setup_context=save_for_backward, lib=library
)


def is_traced(logits: torch.Tensor) -> bool:
    """Whether logits have no data to run on, as under torch.compile, or the rules of a class of its own."""
    return torch.compiler.is_compiling() or logits.is_meta or type(logits) is not torch.Tensor


def run(
    logits: torch.Tensor, target: torch.Tensor, ignore_index: int, label_smoothing: float
) -> torch.Tensor:
    """logits: [M, V]; target: [M], int64, any strides. Returns [] in logits' dtype."""
    if not is_traced(logits):
        return CrossEntropy.apply(logits, target, ignore_index, label_smoothing)[0]
    return torch.ops.reference_kernels.cross_entropy(logits, target, ignore_index, label_smoothing)[0]
