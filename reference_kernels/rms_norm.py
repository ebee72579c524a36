"""Root mean square normalisation of rows: out[m, n] = x[m, n] / sqrt(mean_n x[m, n]**2 + eps) * w[n].

x and out are [M, N], of any row length, w is [N]; Zhang and Sennrich, 2019, arXiv:1910.07467. With a
residual [M, N], x + residual, rounded to x's dtype, takes the place of x, and is returned as well: the
residual stream of a transformer and its normalisation in one kernel. residual may also be None. A row of up
to ONE_PASS_BYTES, with a residual SUM_ONE_PASS_BYTES, stays in registers: each input is read once, each
result written once. A longer row is read twice, the second time from the end backwards, while its tail is
still in the caches. Everything is computed in float32 and rounded once, to x's dtype. As in PyTorch, a row
that holds NaN becomes NaN.

The gradient needs x (or the sum), w and each row's reciprocal root mean square, rrms. With
z[m, n] = x[m, n] * rrms[m] and g[m, n] = dout[m, n] * w[n] it is
dx[m, n] = rrms[m] * (g[m, n] - z[m, n] * mean_n g[m, n] * z[m, n]) and dw[n] = sum_m dout[m, n] * z[m, n].
The gradient that arrives at the sum is added to dx in the same kernel; dx is residual's gradient, too. One
kernel reads x and dout once. Rows longer than BACKWARD_ONE_PASS_COLS are shared by programs that send each
other their parts of the mean, and wait for them, on an NVIDIA GPU; elsewhere the same kernel is launched
twice. Sums over rows are first those of a program, then of all programs, in an order that only the sizes
decide: every run gives the same bits.

Technique: one kernel for two forms, of which a pointer that is None leaves one out; a backward pass in which
every program adds up its own rows for dw while the next rows are copied to shared memory, or the other
programs' sums arrive, and a small kernel that adds up the programs, launched before they end (programmatic
dependent launch, from sm_90 on).
Topics: tiles, masks, meta-parameters, reductions, pipelining and persistence, fusion and precision, backward.
"""

import functools

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[M, N]",
    "residual": "float32|bfloat16|float16[M, N]",
    "w": "float32|bfloat16|float16[N]",
    "eps": 1e-5,
}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}

ONE_PASS_BYTES = 16_384
# What is added up is read back from memory in a second pass.
SUM_ONE_PASS_BYTES = 65_536
# The gradient's kernel has three rows in registers.
BACKWARD_ONE_PASS_COLS = 8192
# Elements that a program of the gradient takes at a time, or one row; and all programs together: 8192 for
# each of an H200's 132 multiprocessors.
TILE = 2048
ELEMENTS_AT_ONCE = 132 * 8192
# Sums that a program of the kernel that adds them up takes at a time.
TOTALS_TILE = 4096
# Programs that share a row, and the most that each of them takes.
SPLITS = 32
SPLIT_BYTES = 8192


def reference(
    x: torch.Tensor, residual: torch.Tensor | None, w: torch.Tensor, eps: float
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """x: [M, N]; residual: [M, N] or None; w: [N]. Returns out, with a residual x + residual, too: [M, N]."""
    if residual is None:
        return torch.nn.functional.rms_norm(x, w.shape, w, eps)
    total = (x + residual).to(x.dtype)
    return torch.nn.functional.rms_norm(total, w.shape, w, eps), total


@triton.jit
def rms_norm_kernel(
    x_ptr,
    residual_ptr,
    w_ptr,
    out_ptr,
    total_ptr,
    rrms_ptr,
    n_rows,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    residual_row_stride,
    residual_col_stride,
    w_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program normalises BLOCK_M whole rows; BLOCK_N >= n_cols.

    x_ptr, residual_ptr: [n_rows, n_cols], any strides; residual_ptr may be None. w_ptr: [n_cols], elements
    w_stride apart. out_ptr, total_ptr: [n_rows, n_cols], rrms_ptr: float32 [n_rows], all contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    # Asked for before the sum, w is there after it.
    w = tl.load(w_ptr + cols * w_stride, mask=cols < n_cols, other=0.0)
    if residual_ptr is not None:
        residual_ptrs = residual_ptr + rows * residual_row_stride + cols * residual_col_stride
        total = (x + tl.load(residual_ptrs, mask=mask, other=0.0).to(tl.float32)).to(x_ptr.dtype.element_ty)
        tl.store(total_ptr + rows * n_cols + cols, total, mask=mask)
        x = total.to(tl.float32)
    rrms = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / n_cols + eps)
    tl.store(out_ptr + rows * n_cols + cols, x * rrms * w.to(tl.float32), mask=mask)
    tl.store(rrms_ptr + rows, rrms, mask=rows < n_rows)


@triton.jit
def rms_norm_long_rows_kernel(
    x_ptr,
    residual_ptr,
    w_ptr,
    out_ptr,
    total_ptr,
    rrms_ptr,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    residual_row_stride,
    residual_col_stride,
    w_stride,
    LANES: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """One program normalises one row, LANES * VECTOR columns at a time.

    Shapes as in rms_norm_kernel.
    """
    BLOCK_N: tl.constexpr = LANES * VECTOR
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * x_row_stride
    out_row_ptr = out_ptr + row * n_cols
    lanes = tl.arange(0, LANES).to(tl.int64)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]

    # Each lane keeps a sum of its own over VECTOR neighbouring columns of every block.
    lane_squares = tl.zeros((LANES,), tl.float32)
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, other=0.0, eviction_policy="evict_last")
        x = x.to(tl.float32)
        if residual_ptr is not None:
            residual_ptrs = residual_ptr + row * residual_row_stride + cols * residual_col_stride
            residual = tl.load(residual_ptrs, mask=mask, other=0.0, eviction_policy="evict_first")
            total = (x + residual.to(tl.float32)).to(x_ptr.dtype.element_ty)
            tl.store(total_ptr + row * n_cols + cols, total, mask=mask)
            x = total.to(tl.float32)
        lane_squares += tl.sum(x * x, axis=1)
    rrms = tl.rsqrt(tl.sum(lane_squares, axis=0) / n_cols + eps)
    tl.store(rrms_ptr + row, rrms)

    if residual_ptr is not None:
        # The sum is read back: a barrier, since another thread of this program may have stored it.
        tl.debug_barrier()
        x_row_ptr = total_ptr + row * n_cols
        x_col_stride = 1
    n_blocks = tl.cdiv(n_cols, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(w_ptr + cols * w_stride, mask=mask, eviction_policy="evict_last").to(tl.float32)
        tl.store(out_row_ptr + cols, x * rrms * w, mask=mask, cache_modifier=".cs")


@triton.jit
def rms_norm_backward_kernel(
    dout_ptr,
    dtotal_ptr,
    x_ptr,
    w_ptr,
    rrms_ptr,
    dx_ptr,
    dw_ptr,
    n_rows,
    n_cols,
    rows_per_program,
    dout_row_stride,
    dout_col_stride,
    dtotal_row_stride,
    dtotal_col_stride,
    x_row_stride,
    x_col_stride,
    w_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """Program p takes the p-th rows_per_program rows, BLOCK_M at a time; BLOCK_N >= n_cols.

    dout_ptr, dtotal_ptr, x_ptr: [n_rows, n_cols], any strides; dtotal_ptr may be None. w_ptr: [n_cols],
    elements w_stride apart. rrms_ptr: float32 [n_rows]. dx_ptr: [n_rows, n_cols]. dw_ptr: [n_programs,
    n_cols], what each program's rows add to dw. rrms, dx and dw are contiguous. OVERLAPS: the next kernel may
    start before this one ends.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0).to(tl.int64)
    first_row = program * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, n_rows)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # Spread over all rows of a block, w is laid out among the threads as x is: nothing needs moving.
    w_cols = tl.broadcast_to(cols, (BLOCK_M, BLOCK_N))
    w = tl.load(w_ptr + w_cols * w_stride, mask=w_cols < n_cols, other=0.0).to(tl.float32)
    for start in tl.range(first_row, end_row, BLOCK_M, num_stages=STAGES):
        rows = start + tl.arange(0, BLOCK_M)[:, None]
        row_mask = rows < end_row
        mask = row_mask & (cols < n_cols)
        dout = tl.load(dout_ptr + rows * dout_row_stride + cols * dout_col_stride, mask=mask, other=0.0)
        x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=0.0)
        rrms = tl.load(rrms_ptr + rows, mask=row_mask, other=0.0)
        dout = dout.to(tl.float32)
        z = x.to(tl.float32) * rrms
        dw += dout * z
        g = dout * w
        dx = rrms * (g - z * (tl.sum(g * z, axis=1, keep_dims=True) / n_cols))
        if dtotal_ptr is not None:
            dtotal_ptrs = dtotal_ptr + rows * dtotal_row_stride + cols * dtotal_col_stride
            dx += tl.load(dtotal_ptrs, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + rows * n_cols + cols, dx, mask=mask)
    tl.store(dw_ptr + program * n_cols + cols, tl.sum(dw, axis=0, keep_dims=True), mask=cols < n_cols)


@triton.jit
def rms_norm_backward_long_rows_kernel(
    dout_ptr,
    dtotal_ptr,
    x_ptr,
    w_ptr,
    rrms_ptr,
    words_ptr,
    dx_ptr,
    dw_ptr,
    n_rows,
    n_cols,
    n_splits,
    rows_per_program,
    cols_per_program,
    dout_row_stride,
    dout_col_stride,
    dtotal_row_stride,
    dtotal_col_stride,
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

    With SUMS it writes its share of each row's sum of g * z to words_ptr, int32 [1 + n_rows * n_splits],
    zeros at first. With GRADIENTS it reads what all programs wrote there, and computes dx and dw. With both
    it is AHEAD rows further with the sums, so that those of the others are there when it needs them, and it
    finds dout and x in L1 again. For what is not there it waits: so programs are numbered, by the first word,
    as they start, and none waits for one that may never run. A word is there or not: nothing else needs an
    order.

    BLOCK_S >= n_splits, BLOCK_N >= cols_per_program; else as rms_norm_backward_kernel.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    if SUMS and GRADIENTS:
        program = tl.atomic_add(words_ptr, 1, sem="relaxed")
    split = program % n_splits
    first_row = (program // n_splits).to(tl.int64) * rows_per_program
    end_row = tl.minimum(first_row + rows_per_program, n_rows)
    block = tl.arange(0, BLOCK_N)
    cols = split.to(tl.int64) * cols_per_program + block
    mask = (block < cols_per_program) & (cols < n_cols)
    splits = tl.arange(0, BLOCK_S)
    w = tl.load(w_ptr + cols * w_stride, mask=mask, other=0.0)
    dw = tl.zeros((BLOCK_N,), tl.float32)
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
            later_rrms = tl.load(rrms_ptr + later, mask=is_later, other=0.0)
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
            rrms = tl.load(rrms_ptr + row, mask=is_row, other=0.0)
            if dtotal_ptr is not None:
                dtotal = tl.load(
                    dtotal_ptr + row * dtotal_row_stride + cols * dtotal_col_stride,
                    mask=mask & is_row,
                    other=0.0,
                    eviction_policy="evict_first",
                )
            word_ptrs = words_ptr + 1 + row * n_splits + splits
            word_mask = (splits < n_splits) & is_row
            words = tl.load(word_ptrs, mask=word_mask, other=-(1 << 31), volatile=True)
        if SUMS:
            gz = later_dout.to(tl.float32) * w.to(tl.float32) * (later_x.to(tl.float32) * later_rrms)
            word = tl.sum(gz, axis=0).to(tl.int32, bitcast=True)
            # No word is 0, which says that it is not there yet: of zeros the negative one is sent.
            word = tl.where(word == 0, -(1 << 31), word)
            tl.atomic_xchg(words_ptr + 1 + later * n_splits + split, word, mask=is_later, sem="relaxed")
        if GRADIENTS:
            dout = dout.to(tl.float32)
            z = x.to(tl.float32) * rrms
            g = dout * w.to(tl.float32)
            dw += dout * z
            while tl.min((words != 0).to(tl.int32), axis=0) == 0:
                words = tl.load(word_ptrs, mask=word_mask, other=-(1 << 31), volatile=True)
            dx = rrms * (g - z * (tl.sum(words.to(tl.float32, bitcast=True), axis=0) / n_cols))
            if dtotal_ptr is not None:
                dx += dtotal.to(tl.float32)
            tl.store(dx_ptr + row * n_cols + cols, dx, mask=mask & is_row, cache_modifier=".cs")
    if GRADIENTS:
        tl.store(dw_ptr + (program // n_splits).to(tl.int64) * n_cols + cols, dw, mask=mask)


@triton.jit
def rms_norm_backward_totals_kernel(
    partial_ptr,
    dw_ptr,
    n_programs,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """One program adds up what all n_programs found for BLOCK_N columns of dw.

    partial_ptr: float32 [n_programs, n_cols]; dw_ptr: [n_cols], both contiguous. OVERLAPS: the kernel before
    this one may still run.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_wait()
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, n_programs, BLOCK_M):
        programs = start + tl.arange(0, BLOCK_M).to(tl.int64)[:, None]
        mask = (programs < n_programs) & (cols < n_cols)
        dw += tl.load(partial_ptr + programs * n_cols + cols, mask=mask, other=0.0)
    tl.store(dw_ptr + cols, tl.sum(dw, axis=0, keep_dims=True), mask=cols < n_cols)


def rms_norm(x: torch.Tensor, w: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """x: [M, N], w: [N], any strides. Returns out [M, N] in x's dtype and each row's rrms, float32 [M]."""
    out, rrms = empty_results(x)
    normalise(x, None, w, out, None, rrms, eps)
    return out, rrms


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, w: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, residual: [M, N], w: [N], any strides.

    Returns out and x + residual, [M, N] in x's dtype, and each row's rrms, float32 [M].
    """
    out, rrms = empty_results(x)
    total = torch.empty_like(out)
    normalise(x, residual, w, out, total, rrms, eps)
    return out, total, rrms


def empty_results(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Memory for out [M, N], contiguous, and rrms, float32 [M]."""
    return x.new_empty(x.shape), x.new_empty(x.shape[0], dtype=torch.float32)


def normalise(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    w: torch.Tensor,
    out: torch.Tensor,
    total: torch.Tensor | None,
    rrms: torch.Tensor,
    eps: float,
) -> None:
    """Fills out and total [M, N] and rrms [M]; x, residual: [M, N], w: [N], any strides."""
    n_rows, n_cols = x.shape
    if out.numel() == 0:
        return
    tensors = (x, residual, w, out, total, rrms)
    strides = (*x.stride(), *strides_of(residual), w.stride(0))
    row_bytes = n_cols * x.element_size()
    if row_bytes > (ONE_PASS_BYTES if residual is None else SUM_ONE_PASS_BYTES):
        # 16 bytes for each lane, four lanes for a thread; of a sum, which is read back, one.
        rms_norm_long_rows_kernel[(n_rows,)](
            *tensors,
            n_cols,
            eps,
            *strides,
            LANES=2048 if residual is None else 1024,
            VECTOR=16 // x.element_size(),
            num_warps=warps(512 if residual is None else 1024),
        )
        return
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, 2048 // BLOCK_N)
    num_warps = min(max(BLOCK_N // 512, 4), 16)
    grid = (triton.cdiv(n_rows, BLOCK_M),)
    rms_norm_kernel[grid](
        *tensors, n_rows, n_cols, eps, *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps
    )


def warps(threads: int) -> int:
    """The warps of so many threads: those of AMD's GPUs may have 64."""
    return threads // triton.runtime.driver.active.get_current_target().warp_size


def strides_of(matrix: torch.Tensor | None) -> tuple[int, int]:
    """Both strides of a matrix, or any two where there is none."""
    return (0, 0) if matrix is None else (matrix.stride(0), matrix.stride(1))


def rms_norm_backward(
    dout: torch.Tensor, dtotal: torch.Tensor | None, x: torch.Tensor, w: torch.Tensor, rrms: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """dout, dtotal, x: [M, N], w: [N], any strides; rrms: float32 [M], contiguous. dtotal may be None.

    Returns the gradients of x [M, N] and w [N], contiguous, each in its tensor's dtype.
    """
    n_rows, n_cols = x.shape
    dx = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    dw = torch.empty(n_cols, dtype=w.dtype, device=x.device)
    if n_cols == 0:
        return dx, dw
    if n_rows == 0:
        return dx, dw.zero_()
    rows = (dout, dtotal, x, w, rrms)
    strides = (*dout.stride(), *strides_of(dtotal), *x.stride(), w.stride(0))
    launch = launch_backward_long_rows if n_cols > BACKWARD_ONE_PASS_COLS else launch_backward
    sums = launch(rows, strides, dx, dw)
    if sums is not dw:
        BLOCK_M = min(triton.next_power_of_2(len(sums)), 256)
        BLOCK_N = TOTALS_TILE // BLOCK_M
        overlaps = launches_overlap(current_device())
        options = {"launch_pdl": True} if overlaps else {}
        rms_norm_backward_totals_kernel[(triton.cdiv(n_cols, BLOCK_N),)](
            sums, dw, len(sums), n_cols, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, OVERLAPS=overlaps, **options
        )
    return dx, dw


def launch_backward(rows, strides, dx, dw):
    """Fills dx [M, N] from rows (dout, dtotal, x, w, rrms), of which strides are those of the first four.

    Returns the sums of all programs for dw, float32 [programs, N], or dw, which the only program has filled.
    """
    n_rows, n_cols = dx.shape
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, TILE // BLOCK_N)
    # No program has fewer than four tiles: a few rows are added up by one, whose sum is dw.
    n_programs = min(ELEMENTS_AT_ONCE // (BLOCK_M * BLOCK_N), triton.cdiv(n_rows, 4 * BLOCK_M))
    rows_per_program = triton.cdiv(triton.cdiv(n_rows, BLOCK_M), n_programs) * BLOCK_M
    n_programs = triton.cdiv(n_rows, rows_per_program)
    sums = sums_of(n_programs, dw)
    rms_norm_backward_kernel[(n_programs,)](
        *rows,
        dx,
        sums,
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
    )
    return sums


def launch_backward_long_rows(rows, strides, dx, dw):
    """The same of rows that several programs share."""
    n_rows, n_cols = dx.shape
    device = current_device()
    BLOCK_N = max(triton.next_power_of_2(n_cols) // SPLITS, 1024)
    BLOCK_N = min(BLOCK_N, SPLIT_BYTES // dx.element_size())
    n_splits = triton.cdiv(n_cols, BLOCK_N)
    n_programs = min(max(ELEMENTS_AT_ONCE // (BLOCK_N * n_splits), 1), n_rows)
    rows_per_program = triton.cdiv(n_rows, n_programs)
    n_programs = triton.cdiv(n_rows, rows_per_program)
    sums = sums_of(n_programs, dw)
    overlaps = n_programs > 1 and launches_overlap(device)
    words = torch.zeros(1 + n_rows * n_splits, dtype=torch.int32, device=dx.device)
    # Whole vectors of 16 bytes.
    cols_per_program = triton.cdiv(n_cols, 16 * n_splits) * 16
    # All programs that share rows must run at once, if they wait for each other.
    waits = n_splits <= programs_at_once(device)
    for finds_sums, finds_gradients in [(True, True)] if waits else [(True, False), (False, True)]:
        rms_norm_backward_long_rows_kernel[(n_programs * n_splits,)](
            *rows,
            words,
            dx,
            sums,
            n_rows,
            n_cols,
            n_splits,
            rows_per_program,
            cols_per_program,
            *strides,
            SUMS=finds_sums,
            GRADIENTS=finds_gradients,
            # dtotal passes through L1 as well: there is room for one row less.
            AHEAD=(2 if rows[1] is None else 1) if waits else 0,
            BLOCK_S=triton.next_power_of_2(n_splits),
            BLOCK_N=BLOCK_N,
            OVERLAPS=overlaps and finds_gradients,
            num_warps=BLOCK_N // 512,
        )
    return sums


def sums_of(n_programs, dw):
    """Room for the sums of so many programs, float32 [n_programs, N]; dw itself for one."""
    if n_programs == 1:
        return dw
    return torch.empty((n_programs, dw.shape[0]), dtype=torch.float32, device=dw.device)


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
    """Keeps x, w and rrms, which has no gradient itself."""
    x, w, _ = inputs
    _, rrms = output
    ctx.mark_non_differentiable(rrms)
    # Else zeros would be written for its gradient.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x, w, rrms)


def save_sum_for_backward(ctx, inputs, output):
    """Keeps the sum in place of x and residual, w, and rrms, which has no gradient itself."""
    _, _, w, _ = inputs
    _, total, rrms = output
    ctx.mark_non_differentiable(rrms)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(total, w, rrms)


@torch.autograd.function.once_differentiable
def backward(ctx, dout, _):
    """The gradients of x and w, as autograd asks for them; they have none of their own."""
    if dout is None:
        return None, None, None
    dx, dw = torch.ops.reference_kernels.rms_norm_backward(dout, None, *ctx.saved_tensors)
    return dx, dw, None


@torch.autograd.function.once_differentiable
def backward_of_sum(ctx, dout, dtotal, _):
    """The gradients of x, residual and w, as autograd asks for them; they have none of their own."""
    if dout is None:
        return dtotal, dtotal, None, None
    dx, dw = torch.ops.reference_kernels.rms_norm_backward(dout, dtotal, *ctx.saved_tensors)
    return dx, dx, dw, None


class RmsNorm(torch.autograd.Function):
    """rms_norm without the dispatcher, which takes longer than the launch."""

    @staticmethod
    def forward(ctx, x, w, eps):
        """What rms_norm returns."""
        output = rms_norm(x, w, eps)
        save_for_backward(ctx, (x, w, eps), output)
        return output

    backward = staticmethod(backward)


class AddRmsNorm(torch.autograd.Function):
    """add_rms_norm without the dispatcher, which takes longer than the launch."""

    @staticmethod
    def forward(ctx, x, residual, w, eps):
        """What add_rms_norm returns."""
        output = add_rms_norm(x, residual, w, eps)
        save_sum_for_backward(ctx, (x, residual, w, eps), output)
        return output

    backward = staticmethod(backward_of_sum)


def fake_add_rms_norm(x, residual, w, eps):
    """Tensors of the shapes and dtypes that add_rms_norm returns."""
    out, rrms = empty_results(x)
    return out, torch.empty_like(out), rrms


def fake_rms_norm_backward(dout, dtotal, x, w, rrms):
    """Tensors of the shapes and dtypes that rms_norm_backward returns."""
    return x.new_empty(x.shape), w.new_empty(w.shape)


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("rms_norm(Tensor x, Tensor w, float eps) -> (Tensor, Tensor)")
library.define("add_rms_norm(Tensor x, Tensor residual, Tensor w, float eps) -> (Tensor, Tensor, Tensor)")
library.define(
    "rms_norm_backward(Tensor dout, Tensor? dtotal, Tensor x, Tensor w, Tensor rrms) -> (Tensor, Tensor)"
)
library.impl("rms_norm", rms_norm, "CompositeExplicitAutograd")
library.impl("add_rms_norm", add_rms_norm, "CompositeExplicitAutograd")
library.impl("rms_norm_backward", rms_norm_backward, "CompositeExplicitAutograd")
RMS_NORM, ADD_RMS_NORM = "reference_kernels::rms_norm", "reference_kernels::add_rms_norm"
RMS_NORM_BACKWARD = "reference_kernels::rms_norm_backward"
torch.library.register_fake(RMS_NORM, lambda x, w, eps: empty_results(x), lib=library)
torch.library.register_fake(ADD_RMS_NORM, fake_add_rms_norm, lib=library)
torch.library.register_fake(RMS_NORM_BACKWARD, fake_rms_norm_backward, lib=library)
torch.library.register_autograd(RMS_NORM, backward, setup_context=save_for_backward, lib=library)
torch.library.register_autograd(
    ADD_RMS_NORM, backward_of_sum, setup_context=save_sum_for_backward, lib=library
)


def is_traced(x: torch.Tensor) -> bool:
    """Whether x has no data to run on, as under torch.compile, or the rules of a class of its own."""
    return torch.compiler.is_compiling() or x.is_meta or type(x) is not torch.Tensor


def run(
    x: torch.Tensor, residual: torch.Tensor | None, w: torch.Tensor, eps: float
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """x: [M, N]; residual: [M, N] or None; w: [N], any strides.

    Returns out [M, N], contiguous, in x's dtype; with a residual also x + residual, likewise.
    """
    if not is_traced(x):
        return RmsNorm.apply(x, w, eps)[0] if residual is None else AddRmsNorm.apply(x, residual, w, eps)[:2]
    if residual is None:
        return torch.ops.reference_kernels.rms_norm(x, w, eps)[0]
    return torch.ops.reference_kernels.add_rms_norm(x, residual, w, eps)[:2]
