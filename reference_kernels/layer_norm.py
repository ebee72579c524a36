"""Layer normalisation of rows: out[m, n] = (x[m, n] - mean[m]) / sqrt(var[m] + eps) * w[n] + b[n].

x and out are [M, N], of any row length, w and b are [N]; mean and var (biased) are those of a row of x; Ba,
Kiros and Hinton, 2016, arXiv:1607.06450. A row of up to ONE_PASS_COLS columns stays in registers: x is read
once, out written once, and the variance is that of the centred row. A longer row is read twice: once for the
mean and variance of its distance from the mean of its first block, once more, from the end backwards, to
normalise it while its tail is still in the L2 cache. Neither way subtracts large squares, so a large mean
costs no more digits than it must. Everything is computed in float32 and rounded once, to x's dtype. As in
PyTorch, a row that holds NaN or an infinity becomes NaN.

The gradient needs x, w and each row's mean and reciprocal standard deviation, rstd. With
z[m, n] = (x[m, n] - mean[m]) * rstd[m] and g[m, n] = dout[m, n] * w[n] it is
dx[m, n] = rstd[m] * (g[m, n] - mean_n g[m, n] - z[m, n] * mean_n g[m, n] * z[m, n]),
dw[n] = sum_m dout[m, n] * z[m, n] and db[n] = sum_m dout[m, n]. One kernel reads x and dout once for all
three. Rows longer than ONE_PASS_COLS are shared by programs that send each other their parts of the two
means, and wait for them, on an NVIDIA GPU; elsewhere the same kernel is launched twice. Sums over rows are
first those of a program, then of all programs, in an order that only the sizes decide: every run gives the
same bits.

Technique: one pass for rows that fit registers, two for others; a backward pass in which every program adds
up its own rows for dw and db while the next rows are copied to shared memory, or the other programs' sums
arrive, and a small kernel that adds up the programs, launched before they end (programmatic dependent launch,
from sm_90 on).
Topics: tiles, masks, reductions, pipelining and persistence, fusion and precision, backward.
"""

import functools

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[M, N]",
    "w": "float32|bfloat16|float16[N]",
    "b": "float32|bfloat16|float16[N]",
    "eps": 1e-5,
}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}

ONE_PASS_COLS = 8192
# Elements that a program of the gradient takes at a time, or one row; and all programs together: 8192 for
# each of an H200's 132 multiprocessors.
TILE = 2048
ELEMENTS_AT_ONCE = 132 * 8192
# Sums that a program of the kernel that adds them up takes at a time.
TOTALS_TILE = 4096
# Programs that share a row, and the most that each of them takes.
SPLITS = 32
SPLIT_BYTES = 8192


def reference(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N]; w, b: [N], in x's dtype. Returns [M, N] in x's dtype."""
    return torch.nn.functional.layer_norm(x, w.shape, w, b, eps)


@triton.jit
def both_sums(a, b, other_a, other_b):
    """Two sums at once, which wait for the other threads once."""
    return a + other_a, b + other_b


@triton.jit
def layer_norm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    n_rows,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    w_stride,
    b_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program normalises BLOCK_M whole rows; BLOCK_N >= n_cols.

    x_ptr: [n_rows, n_cols], any strides. w_ptr, b_ptr: [n_cols], elements w_stride and b_stride apart.
    out_ptr: [n_rows, n_cols], mean_ptr, rstd_ptr: float32 [n_rows], all contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    # Asked for before the sums, w and b are there after them.
    w = tl.load(w_ptr + cols * w_stride, mask=cols < n_cols, other=0.0)
    b = tl.load(b_ptr + cols * b_stride, mask=cols < n_cols, other=0.0)
    mean = tl.sum(x, axis=1, keep_dims=True) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    total, squares = tl.reduce((centred, centred * centred), 1, both_sums, keep_dims=True)
    # A large mean is rounded coarsely: what it left behind is taken out as well.
    remainder = total / n_cols
    variance = tl.maximum(tl.fma(-remainder, remainder, squares / n_cols), 0.0)
    rstd = tl.rsqrt(variance + eps)
    out = (centred - remainder) * rstd * w.to(tl.float32) + b.to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, out, mask=mask)
    tl.store(mean_ptr + rows, mean + remainder, mask=rows < n_rows)
    tl.store(rstd_ptr + rows, rstd, mask=rows < n_rows)


@triton.jit
def layer_norm_long_rows_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    mean_ptr,
    rstd_ptr,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    w_stride,
    b_stride,
    LANES: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """One program normalises one row of LANES * VECTOR columns or more, LANES * VECTOR at a time.

    x_ptr: [n_rows, n_cols], any strides. w_ptr, b_ptr: [n_cols], elements w_stride and b_stride apart.
    out_ptr: [n_rows, n_cols], mean_ptr, rstd_ptr: float32 [n_rows], all contiguous.

    The columns are shifted by the first block's mean. What remains of the row's mean has a square of at most
    n_cols / BLOCK_N times the variance, so the subtraction of it is harmless.
    """
    BLOCK_N: tl.constexpr = LANES * VECTOR
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * x_row_stride
    out_row_ptr = out_ptr + row * n_cols
    lanes = tl.arange(0, LANES).to(tl.int64)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]

    # Each lane keeps sums of its own over VECTOR neighbouring columns of every block.
    lane_sum = tl.zeros((LANES,), tl.float32)
    lane_squares = tl.zeros((LANES,), tl.float32)
    shift = 0.0
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, other=0.0, eviction_policy="evict_last")
        x = x.to(tl.float32)
        if start == 0:
            shift = tl.sum(x) / BLOCK_N
        shifted = tl.where(mask, x - shift, 0.0)
        lane_sum += tl.sum(shifted, axis=1)
        lane_squares += tl.sum(shifted * shifted, axis=1)
    remainder = tl.sum(lane_sum, axis=0) / n_cols
    mean_square = tl.sum(lane_squares, axis=0) / n_cols
    # Squares that overflow make the variance infinite, as in PyTorch, not inf - inf.
    is_finite = mean_square < float("inf")
    # Of shifted columns the remainder's square is no large number.
    variance = tl.where(is_finite, tl.maximum(tl.fma(-remainder, remainder, mean_square), 0.0), mean_square)
    rstd = tl.rsqrt(variance + eps)
    tl.store(mean_ptr + row, shift + remainder)
    tl.store(rstd_ptr + row, rstd)

    n_blocks = tl.cdiv(n_cols, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(w_ptr + cols * w_stride, mask=mask, eviction_policy="evict_last").to(tl.float32)
        b = tl.load(b_ptr + cols * b_stride, mask=mask, eviction_policy="evict_last").to(tl.float32)
        out = (x - shift - remainder) * rstd * w + b
        tl.store(out_row_ptr + cols, out, mask=mask, cache_modifier=".cs")


@triton.jit
def layer_norm_backward_kernel(
    dout_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dw_ptr,
    db_ptr,
    n_rows,
    n_cols,
    rows_per_program,
    dout_row_stride,
    dout_col_stride,
    x_row_stride,
    x_col_stride,
    w_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """Program p takes the p-th rows_per_program rows, BLOCK_M at a time; BLOCK_N >= n_cols.

    dout_ptr, x_ptr: [n_rows, n_cols], any strides. w_ptr: [n_cols], elements w_stride apart. mean_ptr,
    rstd_ptr: float32 [n_rows]. dx_ptr: [n_rows, n_cols]. dw_ptr, db_ptr: [n_programs, n_cols], what each
    program's rows add to dw and db. All but dout, x and w are contiguous. OVERLAPS: the next kernel may start
    before this one ends.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0).to(tl.int64)
    first_row = program * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, n_rows)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # Spread over all rows of a block, w is laid out among the threads as x is: nothing needs moving.
    w_cols = tl.broadcast_to(cols, (BLOCK_M, BLOCK_N))
    w = tl.load(w_ptr + w_cols * w_stride, mask=w_cols < n_cols, other=0.0).to(tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M, num_stages=STAGES):
        rows = start + tl.arange(0, BLOCK_M)[:, None]
        row_mask = rows < end_row
        mask = row_mask & (cols < n_cols)
        dout = tl.load(dout_ptr + rows * dout_row_stride + cols * dout_col_stride, mask=mask, other=0.0)
        x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
        mean = tl.load(mean_ptr + rows, mask=row_mask, other=0.0)
        rstd = tl.load(rstd_ptr + rows, mask=row_mask, other=0.0)
        dout = dout.to(tl.float32)
        z = (x.to(tl.float32) - mean) * rstd
        dw += dout * z
        db += dout
        g = dout * w
        total_g, total_gz = tl.reduce((g, g * z), 1, both_sums, keep_dims=True)
        dx = rstd * (g - total_g / n_cols - z * (total_gz / n_cols))
        tl.store(dx_ptr + rows * n_cols + cols, dx, mask=mask)
    offsets = program * n_cols + cols
    tl.store(dw_ptr + offsets, tl.sum(dw, axis=0, keep_dims=True), mask=cols < n_cols)
    tl.store(db_ptr + offsets, tl.sum(db, axis=0, keep_dims=True), mask=cols < n_cols)


@triton.jit
def layer_norm_backward_long_rows_kernel(
    dout_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    words_ptr,
    dx_ptr,
    dw_ptr,
    db_ptr,
    n_rows,
    n_cols,
    n_splits,
    rows_per_program,
    cols_per_program,
    dout_row_stride,
    dout_col_stride,
    x_row_stride,
    x_col_stride,
    w_stride,
    SUMS: tl.constexpr,
    GRADIENTS: tl.constexpr,
    AHEAD: tl.constexpr,
    BLOCK_S: tl.constexpr,
    BLOCK_N: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """Program p * n_splits + i takes the i-th cols_per_program columns of the p-th rows_per_program rows.

    With SUMS it writes its share of each row's sums of g and g * z to words_ptr, int64 [1 + n_rows *
    n_splits], zeros at first. With GRADIENTS it reads what all programs wrote there, and computes dx, dw and
    db. With both it is AHEAD rows further with the sums, so that those of the others are there when it needs
    them, and it finds dout and x in L1 again. For what is not there it waits: so programs are numbered, by
    the first word, as they start, and none waits for one that may never run. Two numbers travel as one word,
    which is there as a whole or not at all: nothing else needs an order.

    BLOCK_S >= n_splits, BLOCK_N >= cols_per_program; else as layer_norm_backward_kernel.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0).to(tl.int64)
    if SUMS and GRADIENTS:
        program = tl.atomic_add(words_ptr, 1, sem="relaxed")
    split = program % n_splits
    first_row = program // n_splits * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, n_rows)
    block = tl.arange(0, BLOCK_N)
    cols = split * cols_per_program + block
    mask = (block < cols_per_program) & (cols < n_cols)
    splits = tl.arange(0, BLOCK_S)
    w = tl.load(w_ptr + cols * w_stride, mask=mask, other=0.0)
    dw = tl.zeros((BLOCK_N,), tl.float32)
    db = tl.zeros((BLOCK_N,), tl.float32)
    for row in tl.range(first_row - AHEAD, end_row):
        # All that this iteration reads is asked for before any of it is used.
        if SUMS:
            later = row + AHEAD
            is_later = later < end_row
            later_dout = tl.load(
                dout_ptr + later * dout_row_stride + cols * dout_col_stride,
                mask=mask & is_later,
                other=0.0,
                eviction_policy="evict_last",
            )
            later_x = tl.load(
                x_ptr + later * x_row_stride + cols * x_col_stride,
                mask=mask & is_later,
                other=0.0,
                eviction_policy="evict_last",
            )
            later_mean = tl.load(mean_ptr + later, mask=is_later, other=0.0)
            later_rstd = tl.load(rstd_ptr + later, mask=is_later, other=0.0)
        if GRADIENTS:
            is_row = row >= first_row
            dout = tl.load(
                dout_ptr + row * dout_row_stride + cols * dout_col_stride,
                mask=mask & is_row,
                other=0.0,
                eviction_policy="evict_first",
            )
            x = tl.load(
                x_ptr + row * x_row_stride + cols * x_col_stride,
                mask=mask & is_row,
                other=0.0,
                eviction_policy="evict_first",
            )
            mean = tl.load(mean_ptr + row, mask=is_row, other=0.0)
            rstd = tl.load(rstd_ptr + row, mask=is_row, other=0.0)
            word_ptrs = words_ptr + 1 + row * n_splits + splits
            word_mask = (splits < n_splits) & is_row
            words = tl.load(word_ptrs, mask=word_mask, other=1 << 31, volatile=True)
        if SUMS:
            g = later_dout.to(tl.float32) * w.to(tl.float32)
            z = (later_x.to(tl.float32) - later_mean) * later_rstd
            total_g, total_gz = tl.reduce((g, g * z), 0, both_sums)
            low = total_gz.to(tl.uint32, bitcast=True)
            # No word is 0, which says that it is not there yet: of zeros the negative one is sent.
            low = tl.where(low == 0, 0x80000000, low).to(tl.uint64)
            word = (total_g.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | low
            word_ptr = words_ptr + 1 + later * n_splits + split
            tl.atomic_xchg(word_ptr, word.to(tl.int64, bitcast=True), mask=is_later, sem="relaxed")
        if GRADIENTS:
            dout = dout.to(tl.float32)
            z = (x.to(tl.float32) - mean) * rstd
            g = dout * w.to(tl.float32)
            dw += dout * z
            db += dout
            while tl.min((words != 0).to(tl.int32), axis=0) == 0:
                words = tl.load(word_ptrs, mask=word_mask, other=1 << 31, volatile=True)
            mean_g = tl.sum((words >> 32).to(tl.int32).to(tl.float32, bitcast=True), axis=0) / n_cols
            mean_gz = tl.sum(words.to(tl.int32).to(tl.float32, bitcast=True), axis=0) / n_cols
            dx = rstd * (g - mean_g - z * mean_gz)
            tl.store(dx_ptr + row * n_cols + cols, dx, mask=mask & is_row, cache_modifier=".cs")
    if GRADIENTS:
        offsets = program // n_splits * n_cols + cols
        tl.store(dw_ptr + offsets, dw, mask=mask)
        tl.store(db_ptr + offsets, db, mask=mask)


@triton.jit
def layer_norm_backward_totals_kernel(
    partial_ptr,
    dw_ptr,
    db_ptr,
    n_programs,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """One program adds up what all n_programs found for BLOCK_N columns of dw and db.

    partial_ptr: float32 [2, n_programs, n_cols]; dw_ptr, db_ptr: [n_cols], all contiguous. OVERLAPS: the
    kernel before this one may still run.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_wait()
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, n_programs, BLOCK_M):
        programs = start + tl.arange(0, BLOCK_M).to(tl.int64)[:, None]
        mask = (programs < n_programs) & (cols < n_cols)
        dw += tl.load(partial_ptr + programs * n_cols + cols, mask=mask, other=0.0)
        db += tl.load(partial_ptr + (n_programs + programs) * n_cols + cols, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0, keep_dims=True), mask=cols < n_cols)
    tl.store(db_ptr + cols, tl.sum(db, axis=0, keep_dims=True), mask=cols < n_cols)


def layer_norm(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x: [M, N], any strides; w, b: [N], any stride.

    Returns out [M, N] in x's dtype, each row's mean and its reciprocal standard deviation, float32 [M].
    """
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    mean = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    if out.numel() == 0:
        return out, mean, rstd
    tensors = (x, w, b, out, mean, rstd)
    strides = (x.stride(0), x.stride(1), w.stride(0), b.stride(0))
    if n_cols > ONE_PASS_COLS:
        # A lane holds 16 bytes, of the longest rows 32.
        VECTOR = 8 if n_cols <= 32_768 else 16
        layer_norm_long_rows_kernel[(n_rows,)](
            *tensors, n_cols, eps, *strides, LANES=1024, VECTOR=VECTOR, num_warps=16
        )
        return out, mean, rstd
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, 2048 // BLOCK_N)
    num_warps = max(BLOCK_N // 1024, 2 if BLOCK_N >= 512 else 4)
    grid = (triton.cdiv(n_rows, BLOCK_M),)
    layer_norm_kernel[grid](
        *tensors, n_rows, n_cols, eps, *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return out, mean, rstd


def layer_norm_backward(
    dout: torch.Tensor,
    x: torch.Tensor,
    w: torch.Tensor,
    b: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dout, x: [M, N], w, b: [N], any strides; mean, rstd: float32 [M], contiguous. Of b the dtype counts.

    Returns the gradients of x [M, N], w and b [N], contiguous, each in its tensor's dtype.
    """
    n_rows, n_cols = x.shape
    dx = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    dw = torch.empty(n_cols, dtype=w.dtype, device=x.device)
    db = torch.empty(n_cols, dtype=b.dtype, device=x.device)
    if n_cols == 0:
        return dx, dw, db
    if n_rows == 0:
        return dx, dw.zero_(), db.zero_()
    rows, totals = (dout, x, w, mean, rstd), (dw, db)
    strides = (*dout.stride(), *x.stride(), w.stride(0))
    launch = launch_backward_long_rows if n_cols > ONE_PASS_COLS else launch_backward
    sums = launch(rows, strides, dx, totals)
    if sums is not totals:
        n_programs = sums.shape[1]
        BLOCK_M = min(triton.next_power_of_2(n_programs), 256)
        BLOCK_N = TOTALS_TILE // BLOCK_M
        overlaps = launches_overlap(current_device())
        options = {"launch_pdl": True} if overlaps else {}
        layer_norm_backward_totals_kernel[(triton.cdiv(n_cols, BLOCK_N),)](
            sums, *totals, n_programs, n_cols, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, OVERLAPS=overlaps, **options
        )
    return dx, dw, db


def launch_backward(rows, strides, dx, totals):
    """Fills dx [M, N] from rows (dout, x, w, mean, rstd), of which strides are those of the first three.

    Returns the sums of all programs for dw and db, float32 [2, programs, N], or `totals` (dw, db), which the
    only program has filled.
    """
    n_rows, n_cols = dx.shape
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, TILE // BLOCK_N)
    # No program has fewer than four tiles: a few rows are added up by one, whose sums are dw and db.
    n_programs = min(ELEMENTS_AT_ONCE // (BLOCK_M * BLOCK_N), triton.cdiv(n_rows, 4 * BLOCK_M))
    rows_per_program = triton.cdiv(triton.cdiv(n_rows, BLOCK_M), n_programs) * BLOCK_M
    n_programs = triton.cdiv(n_rows, rows_per_program)
    sums = sums_of(n_programs, totals)
    layer_norm_backward_kernel[(n_programs,)](
        *rows,
        dx,
        *sums,
        n_rows,
        n_cols,
        rows_per_program,
        *strides,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        # Rows on their way: 64 KB for each multiprocessor.
        STAGES=1 + max(1, 4 // dx.element_size()),
        OVERLAPS=n_programs > 1 and launches_overlap(current_device()),
        num_warps=BLOCK_M * BLOCK_N // 512,
        # dout * w is rounded before its mean is taken from it: a row of one element leaves exactly 0.
        enable_fp_fusion=False,
    )
    return sums


def launch_backward_long_rows(rows, strides, dx, totals):
    """The same of rows that several programs share."""
    n_rows, n_cols = dx.shape
    device = current_device()
    BLOCK_N = max(triton.next_power_of_2(n_cols) // SPLITS, 1024)
    BLOCK_N = min(BLOCK_N, SPLIT_BYTES // dx.element_size())
    n_splits = triton.cdiv(n_cols, BLOCK_N)
    n_programs = min(max(ELEMENTS_AT_ONCE // (BLOCK_N * n_splits), 1), n_rows)
    rows_per_program = triton.cdiv(n_rows, n_programs)
    n_programs = triton.cdiv(n_rows, rows_per_program)
    sums = sums_of(n_programs, totals)
    overlaps = n_programs > 1 and launches_overlap(device)
    words = torch.zeros(1 + n_rows * n_splits, dtype=torch.int64, device=dx.device)
    # Whole vectors of 16 bytes.
    cols_per_program = triton.cdiv(n_cols, 16 * n_splits) * 16
    # All programs that share rows must run at once, if they wait for each other.
    waits = n_splits <= programs_at_once(device)
    for finds_sums, finds_gradients in [(True, True)] if waits else [(True, False), (False, True)]:
        layer_norm_backward_long_rows_kernel[(n_programs * n_splits,)](
            *rows,
            words,
            dx,
            *sums,
            n_rows,
            n_cols,
            n_splits,
            rows_per_program,
            cols_per_program,
            *strides,
            SUMS=finds_sums,
            GRADIENTS=finds_gradients,
            AHEAD=2 if waits else 0,
            BLOCK_S=triton.next_power_of_2(n_splits),
            BLOCK_N=BLOCK_N,
            OVERLAPS=overlaps and finds_gradients,
            num_warps=BLOCK_N // 512,
        )
    return sums


def sums_of(n_programs, totals):
    """Room for the sums of so many programs, float32 [2, n_programs, N]; `totals` themselves for one."""
    if n_programs == 1:
        return totals
    n_cols = totals[0].shape[0]
    return torch.empty((2, n_programs, n_cols), dtype=torch.float32, device=totals[0].device)


def current_device() -> int:
    """The number of the GPU that kernels are launched on."""
    return triton.runtime.driver.active.get_current_device()


@functools.cache
def programs_at_once(device: int) -> int:
    """The multiprocessors of an NVIDIA GPU, each of which holds a program; 1 elsewhere.

    The interpreter runs one program after the other; on other GPUs none has been seen to wait for another.
    """
    if triton.runtime.driver.active.get_current_target().backend != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


@functools.cache
def launches_overlap(device: int) -> bool:
    """Whether a kernel may start while the one before it ends; asked once for each device."""
    target = triton.runtime.driver.active.get_current_target()
    return target.backend == "cuda" and target.arch >= 90


def save_for_backward(ctx, inputs, output):
    """Keeps x, w, b and the rows' statistics, which have no gradients themselves."""
    x, w, b, _ = inputs
    _, mean, rstd = output
    ctx.mark_non_differentiable(mean, rstd)
    # Else zeros would be written for the gradients of both.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, w, b, mean, rstd)


@torch.autograd.function.once_differentiable
def backward(ctx, dout, *_):
    """The gradients of x, w and b, as autograd asks for them; they have none of their own."""
    if dout is None:
        return None, None, None, None
    return *torch.ops.reference_kernels.layer_norm_backward(dout, *ctx.saved_tensors), None


class LayerNorm(torch.autograd.Function):
    """layer_norm without the dispatcher, which takes longer than the launch."""

    @staticmethod
    def forward(ctx, x, w, b, eps):
        """What layer_norm returns."""
        output = layer_norm(x, w, b, eps)
        save_for_backward(ctx, (x, w, b, eps), output)
        return output

    backward = staticmethod(backward)


def fake_layer_norm(x, w, b, eps):
    """Tensors of the shapes and dtypes that layer_norm returns."""
    mean = x.new_empty(x.shape[0], dtype=torch.float32)
    return x.new_empty(x.shape), mean, torch.empty_like(mean)


def fake_layer_norm_backward(dout, x, w, b, mean, rstd):
    """Tensors of the shapes and dtypes that layer_norm_backward returns."""
    return x.new_empty(x.shape), w.new_empty(w.shape), b.new_empty(b.shape)


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("layer_norm(Tensor x, Tensor w, Tensor b, float eps) -> (Tensor, Tensor, Tensor)")
library.define(
    "layer_norm_backward(Tensor dout, Tensor x, Tensor w, Tensor b, Tensor mean, Tensor rstd)"
    " -> (Tensor, Tensor, Tensor)"
)
library.impl("layer_norm", layer_norm, "CompositeExplicitAutograd")
library.impl("layer_norm_backward", layer_norm_backward, "CompositeExplicitAutograd")
LAYER_NORM, LAYER_NORM_BACKWARD = "reference_kernels::layer_norm", "reference_kernels::layer_norm_backward"
torch.library.register_fake(LAYER_NORM, fake_layer_norm, lib=library)
torch.library.register_fake(LAYER_NORM_BACKWARD, fake_layer_norm_backward, lib=library)
torch.library.register_autograd(LAYER_NORM, backward, setup_context=save_for_backward, lib=library)


def is_traced(x: torch.Tensor) -> bool:
    """Whether x has no data to run on, as under torch.compile, or the rules of a class of its own."""
    return torch.compiler.is_compiling() or x.is_meta or type(x) is not torch.Tensor


def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> torch.Tensor:
    """x: [M, N], any strides; w, b: [N], any stride. Returns [M, N], contiguous, in x's dtype."""
    if not is_traced(x):
        return LayerNorm.apply(x, w, b, eps)[0]
    return torch.ops.reference_kernels.layer_norm(x, w, b, eps)[0]
