"""Softmax along rows: out[m, n] = exp(x[m, n] - max_n x[m, n]) / sum_n exp(x[m, n] - max_n x[m, n]).

x and out are [M, N], of any row length. A row of up to ONE_PASS_COLS columns stays in registers: x is read
once, out written once. A longer row is read twice: once for its maximum and sum (the online normaliser of
Milakov and Gimelshein, 2018, arXiv:1805.02867), once more, from the end backwards, to normalise it while it
is still in the L1 cache. Where it is longer than that, or where rows are few, several programs share a row:
each sends the others its maximum and sum, and waits for theirs, which takes microseconds. Everything is
computed in float32 and rounded once, to x's dtype. As in PyTorch, a row that holds NaN or +inf, or nothing
but -inf, becomes NaN.

The gradient needs nothing but out: dx[m, n] = out[m, n] * (dout[m, n] - sum_n out[m, n] * dout[m, n]). Rows
of up to ONE_PASS_BYTES stay in registers or in the L1 cache.

Technique: one pass for rows that fit registers, an online normaliser and a second pass backwards for others,
which programs of an NVIDIA GPU share, numbered as they start so that none waits in vain.
Topics: tiles, grids, masks, reductions, fusion and precision, device limits, dynamic shapes, backward.
"""

import functools

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}

ONE_PASS_COLS = 16_384
# The gradient's kernel has two rows in registers.
ONE_PASS_BYTES = 65_536
# Of a row, what a multiprocessor's L1 cache holds, and what each of several programs takes.
L1_BYTES = 131_072
SPLIT_BYTES = 32_768
BACKWARD_SPLIT_BYTES = 8192


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N] in x's dtype."""
    return torch.softmax(x, dim=-1)


@triton.jit
def term(x):
    """exp(x) in fewer instructions than tl.exp takes, since below 1e-38 it may be zero."""
    return tl.exp2(x * 1.4426950408889634)


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, x_row_stride, x_col_stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One program normalises BLOCK_M whole rows; BLOCK_N >= n_cols.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_rows, n_cols], contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * x_row_stride + cols * x_col_stride, mask=mask, other=-float("inf"))
    x = x.to(tl.float32)
    numerator = term(x - tl.max(x, axis=1, keep_dims=True))
    # One division a row, not one an element.
    scale = 1.0 / tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(out_ptr + rows * n_cols + cols, numerator * scale, mask=mask)


@triton.jit
def row_and_split(words_ptr, SPLITS: tl.constexpr):
    """The row of this program, and which of its SPLITS programs this is.

    words_ptr: int64, a counter that is 0 at first. Programs are numbered as they start, not as they are
    launched: whatever number is missing in a row will come, since all that could hold it up is before it.
    """
    program = tl.program_id(0).to(tl.int64)
    if SPLITS > 1:
        program = tl.atomic_add(words_ptr, 1, sem="relaxed")
    return program // SPLITS, program % SPLITS


@triton.jit
def exchanged(words_ptr, row, split, first, second, SPLITS: tl.constexpr):
    """The numbers first and second of all programs of a row: float32 [SPLITS], both.

    words_ptr: int64 [1 + n_rows * SPLITS], contiguous, zeros at first. Two numbers travel as one word, which
    is there as a whole or not at all, so that nothing else needs an order, and L1 keeps what it holds.
    """
    low = second.to(tl.uint32, bitcast=True)
    # No word is 0, which says that it is not there yet: of zeros the negative one is sent.
    word = (first.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | tl.where(low == 0, 0x80000000, low)
    row_ptr = words_ptr + 1 + row * SPLITS
    tl.atomic_xchg(row_ptr + split, word.to(tl.int64, bitcast=True), sem="relaxed")
    word_ptrs = row_ptr + tl.arange(0, SPLITS)
    words = tl.load(word_ptrs, volatile=True)
    while tl.min((words != 0).to(tl.int32), axis=0) == 0:
        words = tl.load(word_ptrs, volatile=True)
    firsts = (words >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return firsts, words.to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def softmax_long_rows_kernel(
    x_ptr,
    out_ptr,
    words_ptr,
    n_cols,
    cols_per_split,
    x_row_stride,
    x_col_stride,
    SPLITS: tl.constexpr,
    LANES: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """One program normalises cols_per_split columns of a row, LANES * VECTOR at a time.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_rows, n_cols], contiguous. words_ptr: as exchanged has
    it, or None where SPLITS is 1.

    Each lane keeps a maximum and a sum of its own over VECTOR neighbouring columns of every block, so the
    first loop needs no barrier, and rescales a sum once for VECTOR exponentials.
    """
    BLOCK_N: tl.constexpr = LANES * VECTOR
    row, split = row_and_split(words_ptr, SPLITS)
    first_col = split * cols_per_split
    n_cols_here = tl.minimum(n_cols - first_col, cols_per_split).to(tl.int32)
    x_row_ptr = x_ptr + row * x_row_stride + first_col * x_col_stride
    out_row_ptr = out_ptr + row * n_cols + first_col
    lanes = tl.arange(0, LANES).to(tl.int64)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]

    lane_max = tl.full((LANES,), -float("inf"), tl.float32)
    lane_sum = tl.zeros((LANES,), tl.float32)
    for start in tl.range(0, n_cols_here, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols_here
        x = tl.load(
            x_row_ptr + cols * x_col_stride, mask=mask, other=-float("inf"), eviction_policy="evict_last"
        )
        x = x.to(tl.float32)
        new_max = tl.maximum(lane_max, tl.max(x, axis=1))
        # -inf - -inf is NaN: a lane that has seen only -inf sums to zero instead.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        lane_sum = lane_sum * term(lane_max - shift) + tl.sum(term(x - shift[:, None]), axis=1)
        lane_max = new_max
    if SPLITS > 1:
        split_max = tl.max(lane_max, axis=0)
        shift = tl.where(split_max == -float("inf"), 0.0, split_max)
        split_sum = tl.sum(lane_sum * term(lane_max - shift), axis=0)
        lane_max, lane_sum = exchanged(words_ptr, row, split, split_max, split_sum, SPLITS)
    row_max = tl.max(lane_max, axis=0)
    scale = 1.0 / tl.sum(lane_sum * term(lane_max - row_max), axis=0)

    n_blocks = tl.cdiv(n_cols_here, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols_here
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, eviction_policy="evict_first")
        tl.store(
            out_row_ptr + cols, term(x.to(tl.float32) - row_max) * scale, mask=mask, cache_modifier=".cs"
        )


@triton.jit
def softmax_backward_kernel(
    dout_ptr,
    out_ptr,
    dx_ptr,
    n_rows,
    n_cols,
    dout_row_stride,
    dout_col_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program computes the gradient of BLOCK_M whole rows; BLOCK_N >= n_cols.

    dout_ptr: [n_rows, n_cols], any strides. out_ptr, dx_ptr: [n_rows, n_cols], contiguous.
    """
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N).to(tl.int64)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    dout = tl.load(dout_ptr + rows * dout_row_stride + cols * dout_col_stride, mask=mask, other=0.0)
    dout = dout.to(tl.float32)
    out = tl.load(out_ptr + rows * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    projection = tl.sum(out * dout, axis=1, keep_dims=True)
    tl.store(dx_ptr + rows * n_cols + cols, out * (dout - projection), mask=mask)


@triton.jit
def softmax_backward_long_rows_kernel(
    dout_ptr,
    out_ptr,
    dx_ptr,
    words_ptr,
    n_cols,
    cols_per_split,
    dout_row_stride,
    dout_col_stride,
    SPLITS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One program computes the gradient of cols_per_split columns of a row, BLOCK_N at a time.

    dout_ptr: [n_rows, n_cols], any strides. out_ptr, dx_ptr: [n_rows, n_cols], contiguous. words_ptr: as
    exchanged has it, or None where SPLITS is 1.
    """
    row, split = row_and_split(words_ptr, SPLITS)
    first_col = split * cols_per_split
    n_cols_here = tl.minimum(n_cols - first_col, cols_per_split).to(tl.int32)
    dout_row_ptr = dout_ptr + row * dout_row_stride + first_col * dout_col_stride
    out_row_ptr = out_ptr + row * n_cols + first_col
    dx_row_ptr = dx_ptr + row * n_cols + first_col
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)

    lane_projection = tl.zeros((BLOCK_N,), tl.float32)
    for start in tl.range(0, n_cols_here, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols_here
        out = tl.load(out_row_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        dout = tl.load(
            dout_row_ptr + cols * dout_col_stride, mask=mask, other=0.0, eviction_policy="evict_last"
        )
        lane_projection += out.to(tl.float32) * dout.to(tl.float32)
    projection = tl.sum(lane_projection, axis=0)
    if SPLITS > 1:
        projections, _ = exchanged(words_ptr, row, split, projection, projection, SPLITS)
        projection = tl.sum(projections, axis=0)

    n_blocks = tl.cdiv(n_cols_here, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols_here
        out = tl.load(out_row_ptr + cols, mask=mask, eviction_policy="evict_first").to(tl.float32)
        dout = tl.load(dout_row_ptr + cols * dout_col_stride, mask=mask, eviction_policy="evict_first")
        dx = out * (dout.to(tl.float32) - projection)
        tl.store(dx_row_ptr + cols, dx, mask=mask, cache_modifier=".cs")


def softmax(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    n_rows, n_cols = x.shape
    out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    strides = (x.stride(0), x.stride(1))
    if n_cols > ONE_PASS_COLS:
        words, cols_per_split, n_splits = splits(x, SPLIT_BYTES)
        LANES = 1024 if n_cols <= 65_536 or n_splits > 1 else 2048
        threads = 256 if n_splits > 1 else LANES // 2
        softmax_long_rows_kernel[(n_rows * n_splits,)](
            x,
            out,
            words,
            n_cols,
            cols_per_split,
            *strides,
            n_splits,
            LANES,
            VECTOR=8,
            num_warps=warps(threads),
        )
        return out
    blocks = one_pass_blocks(n_rows, n_cols)
    grid = (triton.cdiv(n_rows, blocks["BLOCK_M"]),)
    softmax_kernel[grid](x, out, n_rows, n_cols, *strides, **blocks)
    return out


def softmax_backward(dout: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """dout: [M, N], any strides; out: [M, N], contiguous. Returns x's gradient, [M, N], contiguous."""
    n_rows, n_cols = out.shape
    dx = torch.empty_like(out)
    if out.numel() == 0:
        return dx
    strides = (dout.stride(0), dout.stride(1))
    BLOCK_N = triton.next_power_of_2(n_cols)
    if n_cols * out.element_size() > ONE_PASS_BYTES:
        words, cols_per_split, n_splits = splits(out, BACKWARD_SPLIT_BYTES)
        BLOCK_N, threads = (2048, 128) if n_splits > 1 else (16_384, 1024)
        softmax_backward_long_rows_kernel[(n_rows * n_splits,)](
            dout,
            out,
            dx,
            words,
            n_cols,
            cols_per_split,
            *strides,
            n_splits,
            BLOCK_N,
            num_warps=warps(threads),
        )
        return dx
    if 2048 < BLOCK_N <= 8192:
        # Half a row takes half the registers, so that more rows are on their way, and is found in L1 again.
        softmax_backward_long_rows_kernel[(n_rows,)](
            dout, out, dx, None, n_cols, n_cols, *strides, 1, BLOCK_N // 2, num_warps=BLOCK_N // 512
        )
        return dx
    blocks = one_pass_blocks(n_rows, n_cols)
    grid = (triton.cdiv(n_rows, blocks["BLOCK_M"]),)
    softmax_backward_kernel[grid](dout, out, dx, n_rows, n_cols, *strides, **blocks)
    return dx


def splits(x: torch.Tensor, split_bytes: int) -> tuple[torch.Tensor | None, int, int]:
    """How rows of x are shared: the words that exchanged needs, columns for a program, programs for a row.

    A row that L1 holds needs no second program, unless there are fewer rows than multiprocessors.
    """
    n_rows, n_cols = x.shape
    row_bytes = n_cols * x.element_size()
    multiprocessors = programs_at_once(triton.runtime.driver.active.get_current_device())
    if multiprocessors == 1 or (row_bytes <= L1_BYTES and n_rows >= multiprocessors):
        return None, n_cols, 1
    # All programs of a row must run at once, or they would wait for each other forever.
    n_splits = min(triton.next_power_of_2(triton.cdiv(row_bytes, split_bytes)), 64)
    n_splits = min(n_splits, triton.next_power_of_2(multiprocessors + 1) // 2)
    words = torch.zeros(1 + n_rows * n_splits, dtype=torch.int64, device=x.device)
    # Whole vectors of 16 bytes.
    return words, triton.cdiv(n_cols, 16 * n_splits) * 16, n_splits


@functools.cache
def programs_at_once(device: int) -> int:
    """The multiprocessors of an NVIDIA GPU, each of which holds a program; 1 elsewhere.

    The interpreter runs one program after the other; on other GPUs none has been seen to wait for another.
    """
    if triton.runtime.driver.active.get_current_target().backend != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


def warps(threads: int) -> int:
    """The warps of so many threads: those of AMD's GPUs may have 64."""
    return threads // triton.runtime.driver.active.get_current_target().warp_size


def one_pass_blocks(n_rows: int, n_cols: int) -> dict[str, int]:
    """A block as wide as a row, of 2048 elements or more where the rows then make eight blocks or more."""
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, min(2048 // BLOCK_N, triton.next_power_of_2(n_rows) // 8))
    return {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "num_warps": min(max(BLOCK_N // 512, 4), 16)}


def save_for_backward(ctx, inputs, output):
    """Keeps out alone: x is not needed any more."""
    ctx.save_for_backward(output)


@torch.autograd.function.once_differentiable
def backward(ctx, dout):
    """x's gradient, as autograd asks for it; it has none of its own."""
    return torch.ops.reference_kernels.softmax_backward(dout, *ctx.saved_tensors)


class Softmax(torch.autograd.Function):
    """softmax without the dispatcher, which takes longer than the launch."""

    @staticmethod
    def forward(ctx, x):
        """What softmax returns."""
        output = softmax(x)
        save_for_backward(ctx, (x,), output)
        return output

    backward = staticmethod(backward)


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("softmax(Tensor x) -> Tensor")
library.define("softmax_backward(Tensor dout, Tensor out) -> Tensor")
library.impl("softmax", softmax, "CompositeExplicitAutograd")
library.impl("softmax_backward", softmax_backward, "CompositeExplicitAutograd")
SOFTMAX, SOFTMAX_BACKWARD = "reference_kernels::softmax", "reference_kernels::softmax_backward"
torch.library.register_fake(SOFTMAX, lambda x: x.new_empty(x.shape), lib=library)
torch.library.register_fake(SOFTMAX_BACKWARD, lambda dout, out: torch.empty_like(out), lib=library)
torch.library.register_autograd(SOFTMAX, backward, setup_context=save_for_backward, lib=library)


def is_traced(x: torch.Tensor) -> bool:
    """Whether x has no data to run on, as under torch.compile, or the rules of a class of its own."""
    return torch.compiler.is_compiling() or x.is_meta or type(x) is not torch.Tensor


def run(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N], any strides. Returns [M, N], contiguous, in x's dtype."""
    if not is_traced(x):
        return Softmax.apply(x)
    return torch.ops.reference_kernels.softmax(x)
