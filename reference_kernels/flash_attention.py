"""Attention: out[b, h, m] = sum_n p[b, h, m, n] * v[b, g, n], p = softmax_n(scale * q[b, h, m] . k[b, g, n]).

q and out are [B, H, M, D], k and v [B, G, N, D]: H is a multiple of G, and H // G heads in a row share group
g (grouped-query attention). With causal, row m attends to the columns n <= m, whatever M and N are: the
triangle starts at the top left, as with PyTorch's is_causal. No score goes to memory: a program walks over k
and v with a running maximum and sum for each of its rows (Dao and others, 2022, arXiv:2205.14135; Dao, 2023,
arXiv:2307.08691), and leaves out what the triangle hides. Only blocks that the diagonal or the end of k cuts
are masked. Scores and sums are float32; products take bfloat16 or float16, to which p and ds are rounded, on
the tensor cores. D up to 256 is padded to a power of 2.

The gradient computes p again, from each row's maximum and the logarithm of its sum, which the forward pass
leaves: apart, since in one float32 large scores would leave the sum few digits. With delta[m] = dout[m] .
out[m] and ds = p * (dout v^T - delta), it is dv = p^T dout, dk = scale * ds^T q, dq = scale * ds k. In ds
nearly equal terms may cancel, so the forward pass also leaves what rounding took from out. One kernel
computes delta and dq, along the columns, then another dk and dv, along the rows of all heads of a group: no
atomics, every run gives the same bits.

Tiles are loaded by tensor descriptors (TMA from sm_90 on), which read zeros beyond the end. A tensor whose
rows do not start at multiples of 16 bytes, or whose last stride is not 1, is copied first. NaN and infinite
scores make their row NaN. All are declared finite: PyTorch multiplies what the triangle hides by 0, so that
an infinity there makes NaN, of v in out, of k in dq and of q in dv, and a kernel that skips it does not.
Tiles suit sm_90 and sm_100; elsewhere they are small: descriptors become narrow loads, which nothing
prefetches.

Technique: online softmax over tiles of k and v, fused with both products, masks only where a tile is cut, and
recomputation in the gradient, by one kernel for dq and one for dk and dv.
Topics: tiles, grids, fusion and precision, pipelining and persistence, descriptors, backward.
"""

import functools
import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

INPUTS = {
    "q": "bfloat16|float16[B, H, M, D] in -4..4",
    "k": "bfloat16|float16[B, G, N, D] in -2..2",
    "v": "bfloat16|float16[B, G, N, D] in -8..8",
    "causal": True,
    "scale": 0.125,
}
DIMS = {"B": [1, 2], "H": [2, 4], "G": [1, 2], "M": [1, 150, 260], "N": [1, 150, 260], "D": [16, 64, 80, 128]}
# Of an empty batch PyTorch returns None on a GPU.
REQUIRES = ["H % G == 0", "D <= 256", "B >= 1", "M >= 1", "N >= 1", "D >= 1"]

LOG2_E = tl.constexpr(math.log2(math.e))

# By kernel: the widest BLOCK_D, and for it BLOCK_M, BLOCK_N, num_warps, num_stages. Up to 128 two programs of
# four warps fit a multiprocessor of sm_90 or sm_100: one multiplies while the other takes exponentials. The
# widest tiles spill a few registers, after the loop but for two: smaller ones take half as long again.
TILES = {
    "forward": [(64, 128, 64, 8, 3), (128, 64, 64, 4, 3), (256, 128, 64, 8, 2)],
    "dq": [(64, 128, 64, 8, 3), (128, 64, 64, 4, 3), (256, 64, 64, 8, 2)],
    "dkdv": [(64, 64, 128, 8, 3), (128, 64, 64, 4, 2), (256, 32, 64, 8, 3)],
}
# For other GPUs, where addresses take registers too, or shared memory is smaller.
SMALL_TILES = [(64, 32, 32, 8, 1), (128, 32, 16, 8, 1), (256, 16, 16, 8, 1)]


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float
) -> torch.Tensor:
    """q: [B, H, M, D]; k, v: [B, G, N, D], of one dtype. Returns [B, H, M, D] in that dtype."""
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=causal, scale=scale, enable_gqa=True
    )


@triton.jit
def load_tile(desc, batch, head, first_row):
    """The tile of desc [B, heads, rows, D] that starts at first_row: [rows of a tile, columns of a tile]."""
    tile = desc.load([batch, head, first_row, 0])
    return tile.reshape(desc.block_shape[2], desc.block_shape[3])


@triton.jit
def in_registers(tile):
    """The same tile, but no longer as it was loaded: wgmma then takes it from registers.

    Shared memory is what the products compete for.
    """
    return tile.to(tl.int16, bitcast=True).to(tile.dtype, bitcast=True)


@triton.jit
def store_tile(ptr, tile, head, first_row, n_rows, n_cols):
    """Writes tile to ptr [B * heads, n_rows, n_cols], contiguous, from row first_row of head on."""
    rows = first_row + tl.arange(0, tile.shape[0])[:, None]
    cols = tl.arange(0, tile.shape[1])[None, :]
    offsets = (head.to(tl.int64) * n_rows + rows) * n_cols + cols
    tl.store(ptr + offsets, tile, mask=(rows < n_rows) & (cols < n_cols))


@triton.jit
def rows_of_program(M, N, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The program's batch * H + head and first row, and the ends of the columns that its rows see.

    All rows see all columns before the first end, a multiple of BLOCK_N; those before the second, some do.
    """
    row_blocks = tl.cdiv(M, BLOCK_M)
    # The last rows, which see most columns, come first: short programs fill the end of the launch.
    first_row = (row_blocks - 1 - tl.program_id(0) % row_blocks) * BLOCK_M
    whole = (tl.minimum(first_row + 1, N) if CAUSAL else N) // BLOCK_N * BLOCK_N
    end = tl.minimum(first_row + BLOCK_M, N) if CAUSAL else N
    return tl.program_id(0) // row_blocks, first_row, whole, end


@triton.jit
def masked(scores, rows, cols, N, CAUSAL: tl.constexpr):
    """scores: [BLOCK_M, BLOCK_N], of these rows and columns: -inf where a row does not attend to a column."""
    visible = cols[None, :] < N
    if CAUSAL:
        visible &= cols[None, :] <= rows[:, None]
    return tl.where(visible, scores, -float("inf"))


@triton.jit
def flash_attention_kernel(
    q_desc, k_desc, v_desc, out_ptr, rest_ptr, max_ptr, log_sum_ptr, H, G, M, N, D, scale,
    CAUSAL: tl.constexpr, DIFFERENTIABLE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program computes BLOCK_M rows of one head.

    q_desc: [B, H, M, D]. k_desc, v_desc: [B, G, N, D]. out_ptr: [B, H, M, D] and, written where
    DIFFERENTIABLE, rest_ptr: [B, H, M, D] and max_ptr, log_sum_ptr: [B, H, M], contiguous.
    """
    batch_head, first_row, whole, end = rows_of_program(M, N, CAUSAL, BLOCK_M, BLOCK_N)
    batch, head = batch_head // H, batch_head % H
    group = head // (H // G)
    rows = first_row + tl.arange(0, BLOCK_M)
    # exp(x) is exp2(x * log2(e)), and powers of 2 are what the hardware computes.
    qk_scale = scale * LOG2_E

    q = load_tile(q_desc, batch, head, first_row)
    # Wider tiles would need more registers than there are.
    if BLOCK_D <= 128:
        q = in_registers(q)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # Finite, so that a difference from it is never NaN, not even that of a score of -inf.
    row_max = tl.full((BLOCK_M,), -3.4e38, tl.float32)
    row_sum = tl.zeros((BLOCK_M,), tl.float32)
    # Scores are computed an iteration before they are needed: while tensor cores multiply, others take
    # exponentials. Beyond the last column k reads as zeros, and nothing uses the scores.
    scores = tl.dot(q, load_tile(k_desc, batch, group, 0).T)
    tl.assume(end > 0)
    for col in tl.range(0, end, BLOCK_N):
        v = load_tile(v_desc, batch, group, col)
        next_scores = tl.dot(q, load_tile(k_desc, batch, group, col + BLOCK_N).T)
        if col >= whole:
            scores = masked(scores, rows, col + tl.arange(0, BLOCK_N), N, CAUSAL)
        new_max = tl.maximum(row_max, tl.max(scores, axis=1))
        # Scaled after the difference, which is exactly 0 at the maximum, however large that is: a fused
        # multiply-add of scaled terms would leave what rounding took from one of them.
        p = tl.exp2((scores - new_max[:, None]) * qk_scale)
        rescale = tl.exp2((row_max - new_max) * qk_scale)
        row_sum = row_sum * rescale + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None])
        row_max, scores = new_max, next_scores

    exact = acc * (1 / row_sum)[:, None]
    out = exact.to(out_ptr.dtype.element_ty)
    store_tile(out_ptr, out, batch_head, first_row, M, D)
    if DIFFERENTIABLE:
        rest = (exact - out).to(out.dtype)
        store_tile(rest_ptr, rest, batch_head, first_row, M, D)
        at_rows = batch_head.to(tl.int64) * M + rows
        tl.store(max_ptr + at_rows, row_max, mask=rows < M)
        tl.store(log_sum_ptr + at_rows, tl.log2(row_sum), mask=rows < M)


@triton.jit
def flash_attention_dq_kernel(
    dout_desc, q_desc, k_desc, v_desc, out_desc, rest_desc, max_ptr, log_sum_ptr, delta_ptr, dq_ptr,
    H, G, M, N, D, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program computes BLOCK_M rows of delta and of dq of one head, in the order of the forward pass.

    dout_desc, q_desc, out_desc, rest_desc: [B, H, M, D]. k_desc, v_desc: [B, G, N, D]. max_ptr, log_sum_ptr,
    delta_ptr: [B, H, M] and dq_ptr: [B, H, M, D], contiguous.
    """
    batch_head, first_row, whole, end = rows_of_program(M, N, CAUSAL, BLOCK_M, BLOCK_N)
    batch, head = batch_head // H, batch_head % H
    group = head // (H // G)
    rows = first_row + tl.arange(0, BLOCK_M)
    at_rows = batch_head.to(tl.int64) * M + rows
    qk_scale = scale * LOG2_E

    dout = load_tile(dout_desc, batch, head, first_row)
    out = load_tile(out_desc, batch, head, first_row)
    rest = load_tile(rest_desc, batch, head, first_row)
    # The diagonal of a product, added up in the order of dp's sums: where one p is 1, ds is exactly 0.
    diagonal = tl.arange(0, BLOCK_M)[:, None] == tl.arange(0, BLOCK_M)[None, :]
    delta = tl.sum(tl.where(diagonal, tl.dot(dout, out.T), 0.0), axis=1)
    delta += tl.sum(dout.to(tl.float32) * rest.to(tl.float32), axis=1)
    tl.store(delta_ptr + at_rows, delta, mask=rows < M)

    q = load_tile(q_desc, batch, head, first_row)
    # Narrower tiles do not need it, and at 64 columns ptxas 12.8 to 13.0 gives q's registers to ds as well:
    # from the second iteration on, scores would be those of ds.
    if BLOCK_D == 128:
        q = in_registers(q)
    row_max = tl.load(max_ptr + at_rows, mask=rows < M, other=0.0)
    log_sum = tl.load(log_sum_ptr + at_rows, mask=rows < M, other=0.0)
    dq = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    tl.assume(end > 0)
    for col in tl.range(0, end, BLOCK_N):
        k = load_tile(k_desc, batch, group, col)
        v = load_tile(v_desc, batch, group, col)
        scores = tl.dot(q, k.T)
        if col >= whole:
            scores = masked(scores, rows, col + tl.arange(0, BLOCK_N), N, CAUSAL)
        # Before the exponentials, which overlap with it.
        dp = tl.dot(dout, v.T)
        p = tl.exp2((scores - row_max[:, None]) * qk_scale - log_sum[:, None])
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)

    store_tile(dq_ptr, dq * scale, batch_head, first_row, M, D)


@triton.jit
def flash_attention_dkdv_kernel(
    dout_desc, q_desc, k_desc, v_desc, max_ptr, log_sum_ptr, delta_ptr, dk_ptr, dv_ptr, H, G, M, N, D, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """One program computes BLOCK_N rows of dk and dv of one group, over all rows of all its heads.

    dout_desc, q_desc: [B, H, M, D]. k_desc, v_desc: [B, G, N, D]. max_ptr, log_sum_ptr, delta_ptr: [B, H, M]
    and dk_ptr, dv_ptr: [B, G, N, D], contiguous. Scores are transposed, [BLOCK_N, BLOCK_M]: p and ds are then
    the first operands of the products that follow, which may stay in registers.
    """
    col_blocks = tl.cdiv(N, BLOCK_N)
    first_col = tl.program_id(0) % col_blocks * BLOCK_N
    batch_group = tl.program_id(0) // col_blocks
    batch, group = batch_group // G, batch_group % G
    # The first block of rows that see some of the columns, and the end: one block at least, be it beyond M.
    # Were the loop not sure to run, or did dk not start at 0, ptxas would wait for each single wgmma.
    start = first_col // BLOCK_M * BLOCK_M if CAUSAL else 0
    end = tl.maximum(tl.cdiv(M, BLOCK_M) * BLOCK_M, start + BLOCK_M)
    blocks, heads = (end - start) // BLOCK_M, H // G
    qk_scale = scale * LOG2_E

    k = load_tile(k_desc, batch, group, first_col)
    v = load_tile(v_desc, batch, group, first_col)
    dk = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    tl.assume(blocks * heads > 0)
    for step in tl.range(0, blocks * heads):
        head = group * heads + step // blocks
        # From the last row upwards: programs that see different rows read the same ones at a time.
        row = end - BLOCK_M - step % blocks * BLOCK_M
        # Beyond the last row q and dout are zeros, and add nothing; columns beyond N are not stored.
        rows = row + tl.arange(0, BLOCK_M)
        at_rows = (batch * H + head).to(tl.int64) * M + rows
        q = load_tile(q_desc, batch, head, row)
        dout = load_tile(dout_desc, batch, head, row)
        scores = tl.dot(k, q.T)
        if CAUSAL and row < first_col + BLOCK_N - 1:
            cols = first_col + tl.arange(0, BLOCK_N)
            scores = tl.where(cols[:, None] <= rows[None, :], scores, -float("inf"))
        # Each is loaded where it is used, which takes fewest registers.
        scores -= tl.load(max_ptr + at_rows, mask=rows < M, other=0.0)[None, :]
        dp = tl.dot(v, dout.T)
        p = tl.exp2(scores * qk_scale - tl.load(log_sum_ptr + at_rows, mask=rows < M, other=0.0)[None, :])
        dv = tl.dot(p.to(dout.dtype), dout, dv)
        delta = tl.load(delta_ptr + at_rows, mask=rows < M, other=0.0)
        dk = tl.dot((p * (dp - delta[None, :])).to(q.dtype), q, dk)

    # What rows that see none of the columns add: 0 * q, NaN where q made their scores infinite or NaN.
    hidden = 0.0
    for head in tl.range(group * heads, (group + 1) * heads):
        first = (batch * H + head).to(tl.int64) * M
        for row in tl.range(0, tl.minimum(start, M), 1024):
            rows = row + tl.arange(0, 1024)
            hidden += tl.sum(0.0 * tl.load(log_sum_ptr + first + rows, mask=rows < M, other=0.0))
    store_tile(dk_ptr, dk * scale + hidden, batch_group, first_col, N, D)
    store_tile(dv_ptr, dv, batch_group, first_col, N, D)


def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float, differentiable: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """q: [B, H, M, D]; k, v: [B, G, N, D]; any strides; scale > 0.

    Returns out [B, H, M, D], in q's dtype, and, empty unless differentiable, what its rounding left over, in
    the same dtype, and of each row the largest q . k and log2 of the sum of exp(scale * (q . k - largest)),
    float32 [B, H, M].
    """
    if q.dtype not in (torch.bfloat16, torch.float16):
        raise TypeError(f"flash_attention takes bfloat16 or float16, not {q.dtype}")
    B, H, M, D = q.shape
    G, N = k.shape[1:3]
    out = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    rest = torch.empty_like(out) if differentiable else out.new_empty(0)
    row_max = out.new_empty((B, H, M) if differentiable else 0, dtype=torch.float32)
    log_sum = torch.empty_like(row_max)
    if out.numel() == 0 or N == 0:
        return out.zero_(), rest.zero_(), row_max.zero_(), log_sum.zero_()
    options = launch_options("forward", q)
    grid = (B * H * triton.cdiv(M, options["BLOCK_M"]),)
    flash_attention_kernel[grid](
        *described([q], options["BLOCK_M"]), *described([k, v], options["BLOCK_N"]),
        out, rest, row_max, log_sum, H, G, M, N, D, scale,
        CAUSAL=causal, DIFFERENTIABLE=differentiable, **options,
    )  # fmt: skip
    return out, rest, row_max, log_sum


def flash_attention_backward(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
    out: torch.Tensor, rest: torch.Tensor, row_max: torch.Tensor, log_sum: torch.Tensor,
    *, causal: bool, scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """dout: [B, H, M, D], any strides; the others as flash_attention takes and returns them.

    Returns the gradients of q, k and v, contiguous.
    """
    B, H, M, D = q.shape
    G, N = k.shape[1:3]
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    if q.numel() == 0 or k.numel() == 0:
        return dq.zero_(), dk.zero_(), dv.zero_()
    dout, q, k, v = (aligned(x) for x in (dout, q, k, v))
    delta = torch.empty_like(row_max)
    arguments = (H, G, M, N, D, scale, causal)

    options = launch_options("dq", q)
    grid = (B * H * triton.cdiv(M, options["BLOCK_M"]),)
    flash_attention_dq_kernel[grid](
        *described([dout, q], options["BLOCK_M"]), *described([k, v], options["BLOCK_N"]),
        *described([out, rest], options["BLOCK_M"]), row_max, log_sum, delta, dq, *arguments, **options,
    )  # fmt: skip

    options = launch_options("dkdv", q)
    grid = (B * G * triton.cdiv(N, options["BLOCK_N"]),)
    flash_attention_dkdv_kernel[grid](
        *described([dout, q], options["BLOCK_M"]), *described([k, v], options["BLOCK_N"]),
        row_max, log_sum, delta, dk, dv, *arguments, **options,
    )  # fmt: skip
    return dq, dk, dv


@functools.cache
def tiles_of(device: int) -> dict[str, list[tuple[int, ...]]]:
    """The tiles that suit the GPU, by its TMA unit and its shared memory; asked once for each."""
    target = triton.runtime.driver.active.get_current_target()
    # The interpreter ("cpu") takes any tile; sm_120 has a TMA unit, but less shared memory.
    large = target.backend == "cpu" or (target.backend == "cuda" and target.arch // 10 in (9, 10))
    return TILES if large else dict.fromkeys(TILES, SMALL_TILES)


def launch_options(kernel: str, q: torch.Tensor) -> dict[str, int]:
    """The tiles of a kernel, and its warps and stages, for q [B, H, M, D]."""
    tiles = tiles_of(triton.runtime.driver.active.get_current_device())[kernel]
    BLOCK_D = block_d(q)
    chosen = next(rest for width, *rest in tiles if width >= BLOCK_D)
    names = ("BLOCK_M", "BLOCK_N", "num_warps", "num_stages")
    return dict(zip(names, chosen, strict=True), BLOCK_D=BLOCK_D)


def block_d(x: torch.Tensor) -> int:
    """The columns of a tile of x [B, heads, rows, D]."""
    return max(16, triton.next_power_of_2(x.shape[3]))


def described(tensors: list[torch.Tensor], block_rows: int) -> list[TensorDescriptor]:
    """The tensors [B, heads, rows, D], or aligned copies, in tiles of block_rows rows of one head."""
    return [TensorDescriptor.from_tensor(aligned(x), [1, 1, block_rows, block_d(x)]) for x in tensors]


def aligned(x: torch.Tensor) -> torch.Tensor:
    """x [B, heads, rows, D], or a copy of it whose rows start at multiples of 16 bytes, as TMA reads them."""
    step = 16 // x.element_size()
    if x.stride(3) == 1 and x.data_ptr() % 16 == 0 and all(s > 0 and s % step == 0 for s in x.stride()[:3]):
        return x
    padded = triton.cdiv(x.shape[3], step) * step
    copy = torch.empty((*x.shape[:3], padded), dtype=x.dtype, device=x.device)
    return copy[..., : x.shape[3]].copy_(x)


def save_for_backward(ctx, inputs, keyword_only_inputs, output):
    """Keeps what went in and came out: scores are computed again."""
    ctx.save_for_backward(*inputs, *output)
    ctx.causal, ctx.scale = keyword_only_inputs["causal"], keyword_only_inputs["scale"]
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


@torch.autograd.function.once_differentiable
def backward(ctx, dout, *_):
    """The gradients of q, k and v, as autograd asks for them."""
    if dout is None:
        return None, None, None
    gradient = torch.ops.reference_kernels.flash_attention_backward
    return gradient(dout, *ctx.saved_tensors, causal=ctx.causal, scale=ctx.scale)


def fake_flash_attention(q, k, v, *, causal, scale, differentiable):
    """Shapes and dtypes alone, of what flash_attention returns."""
    rest = q.new_empty(q.shape if differentiable else 0)
    row_max = q.new_empty(q.shape[:3] if differentiable else 0, dtype=torch.float32)
    return q.new_empty(q.shape), rest, row_max, torch.empty_like(row_max)


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define(
    "flash_attention(Tensor q, Tensor k, Tensor v, *, bool causal, float scale, bool differentiable)"
    " -> (Tensor, Tensor, Tensor, Tensor)"
)
library.define(
    "flash_attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor out, Tensor rest,"
    " Tensor row_max, Tensor log_sum, *, bool causal, float scale) -> (Tensor, Tensor, Tensor)"
)
library.impl("flash_attention", flash_attention, "CompositeExplicitAutograd")
library.impl("flash_attention_backward", flash_attention_backward, "CompositeExplicitAutograd")
torch.library.register_fake("reference_kernels::flash_attention", fake_flash_attention, lib=library)
torch.library.register_fake(
    "reference_kernels::flash_attention_backward",
    lambda dout, q, k, v, *_, **__: tuple(x.new_empty(x.shape) for x in (q, k, v)),
    lib=library,
)
torch.library.register_autograd(
    "reference_kernels::flash_attention", backward, setup_context=save_for_backward, lib=library
)


def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool, scale: float) -> torch.Tensor:
    """q: [B, H, M, D]; k, v: [B, G, N, D], of one dtype, any strides. Returns [B, H, M, D] in that dtype."""
    if scale <= 0:
        # The kernels take the maximum of a row before they scale it.
        q, scale = (-q, -scale) if scale < 0 else (q * 0, 1.0)
    differentiable = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    return torch.ops.reference_kernels.flash_attention(
        q, k, v, causal=causal, scale=scale, differentiable=differentiable
    )[0]
