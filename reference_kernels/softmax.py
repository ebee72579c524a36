"""Softmax along rows: out[m, n] = exp(x[m, n] - max_n x[m, n]) / sum_n exp(x[m, n] - max_n x[m, n]).

x and out are [M, N], of any row length. A row of up to ONE_PASS_COLS columns stays in registers: x is read
once, out written once. A longer row is read twice: once for its maximum and sum (the online normaliser of
Milakov and Gimelshein, 2018, arXiv:1805.02867), once more, from the end backwards, to normalise it while
its tail is still in the L2 cache. Everything is computed in float32 and rounded once, to x's dtype. As in
PyTorch, a row that holds NaN or +inf, or nothing but -inf, becomes NaN.

The gradient needs nothing but out: dx[m, n] = out[m, n] * (dout[m, n] - sum_n out[m, n] * dout[m, n]). Rows
of up to ONE_PASS_BYTES stay in registers or in the L1 cache.

Technique: one pass for rows that fit registers, an online normaliser and a second pass backwards for others.
Topics: tiles, masks, reductions, fusion and precision, dynamic shapes, backward.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[M, N]"}
DIMS = {"M": [1, 7, 256], "N": [1, 64, 1000, 4096, 20_000]}

ONE_PASS_COLS = 16_384
# The gradient's kernel has two rows in registers.
ONE_PASS_BYTES = 65_536


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns [M, N] in x's dtype."""
    return torch.softmax(x, dim=-1)


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
    numerator = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    denominator = tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(out_ptr + rows * n_cols + cols, numerator / denominator, mask=mask)


@triton.jit
def softmax_long_rows_kernel(
    x_ptr, out_ptr, n_cols, x_row_stride, x_col_stride, LANES: tl.constexpr, VECTOR: tl.constexpr
):
    """One program normalises one row, LANES * VECTOR columns at a time.

    x_ptr: [n_rows, n_cols], any strides. out_ptr: [n_rows, n_cols], contiguous.

    Each lane keeps a maximum and a sum of its own over VECTOR neighbouring columns of every block, so the
    first loop needs no barrier, and rescales a sum once for VECTOR exponentials.
    """
    BLOCK_N: tl.constexpr = LANES * VECTOR
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * x_row_stride
    out_row_ptr = out_ptr + row * n_cols
    lanes = tl.arange(0, LANES).to(tl.int64)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]

    lane_max = tl.full((LANES,), -float("inf"), tl.float32)
    lane_sum = tl.zeros((LANES,), tl.float32)
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(
            x_row_ptr + cols * x_col_stride, mask=mask, other=-float("inf"), eviction_policy="evict_last"
        )
        x = x.to(tl.float32)
        new_max = tl.maximum(lane_max, tl.max(x, axis=1))
        # -inf - -inf is NaN: a lane that has seen only -inf sums to zero instead.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        lane_sum = lane_sum * tl.exp(lane_max - shift) + tl.sum(tl.exp(x - shift[:, None]), axis=1)
        lane_max = new_max
    row_max = tl.max(lane_max, axis=0)
    row_sum = tl.sum(lane_sum * tl.exp(lane_max - row_max), axis=0)

    n_blocks = tl.cdiv(n_cols, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, eviction_policy="evict_first")
        out = tl.exp(x.to(tl.float32) - row_max) / row_sum
        tl.store(out_row_ptr + cols, out, mask=mask, cache_modifier=".cs")


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
    dout_ptr, out_ptr, dx_ptr, n_cols, dout_row_stride, dout_col_stride, BLOCK_N: tl.constexpr
):
    """One program computes the gradient of one row, BLOCK_N columns at a time.

    dout_ptr: [n_rows, n_cols], any strides. out_ptr, dx_ptr: [n_rows, n_cols], contiguous.
    """
    row = tl.program_id(0).to(tl.int64)
    dout_row_ptr = dout_ptr + row * dout_row_stride
    out_row_ptr = out_ptr + row * n_cols
    dx_row_ptr = dx_ptr + row * n_cols
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)

    lane_projection = tl.zeros((BLOCK_N,), tl.float32)
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        out = tl.load(out_row_ptr + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        dout = tl.load(
            dout_row_ptr + cols * dout_col_stride, mask=mask, other=0.0, eviction_policy="evict_last"
        )
        lane_projection += out.to(tl.float32) * dout.to(tl.float32)
    projection = tl.sum(lane_projection, axis=0)

    n_blocks = tl.cdiv(n_cols, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols
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
        LANES = 1024 if n_cols <= 65_536 else 2048
        softmax_long_rows_kernel[(n_rows,)](
            x, out, n_cols, *strides, LANES=LANES, VECTOR=8, num_warps=warps(LANES // 2)
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
        softmax_backward_long_rows_kernel[(n_rows,)](
            dout, out, dx, n_cols, *strides, BLOCK_N=16_384, num_warps=warps(1024)
        )
        return dx
    if 2048 < BLOCK_N <= 8192:
        # Half a row takes half the registers, so that more rows are on their way, and is found in L1 again.
        softmax_backward_long_rows_kernel[(n_rows,)](
            dout, out, dx, n_cols, *strides, BLOCK_N=BLOCK_N // 2, num_warps=BLOCK_N // 512
        )
        return dx
    blocks = one_pass_blocks(n_rows, n_cols)
    grid = (triton.cdiv(n_rows, blocks["BLOCK_M"]),)
    softmax_backward_kernel[grid](dout, out, dx, n_rows, n_cols, *strides, **blocks)
    return dx


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
