"""Layer normalisation and the linear layer after it: out = layer_norm(x) @ w^T + bias.

x is [M, K], w is [N, K], bias is [N], out is [M, N]; layer_norm(x)[m, k] = (x[m, k] - mean[m]) /
sqrt(var[m] + eps) * g[k] + b[k] with g and b [K]; Ba, Kiros and Hinton, 2016, arXiv:1607.06450. One kernel
writes the normalised rows, rounded to x's dtype as PyTorch rounds them, a second one multiplies them and adds
bias. Sums are float32, rounded once, to x's dtype; float32 operands are multiplied as bf16x6, at float32's
accuracy. From sm_90 on the second kernel's programs start while the first one's last rows are written. As in
PyTorch, NaN and infinities in x make their row NaN, those in g and w spread as products do.

Two ways save writing the normalised rows, and neither is taken. The algebraic fold, rstd * (x @ (g * w)^T -
mean * sum(g * w)) + ..., subtracts sums that grow with the mean, so a large mean costs digits, and an
infinity in w leaves inf - inf; it must write g * w, too. Normalising each block of x within the product does
so N / BLOCK_N times, and sends it to the tensor cores by way of registers. The rows that are written here
cost M * K elements of traffic, some 4 % of the product's time at M=8192 and N=K=4096 in bfloat16, for a
product that reads both operands by descriptors (TMA), straight into the shared memory that it multiplies.

Technique: statistics shifted by the first block's mean, then a product by programs that stay, of blocks that
descriptors (TMA) copy, launched before the rows are done (programmatic dependent launch).
Topics: tiles, autotune, pipelining and persistence, reductions, fusion and precision, descriptors.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

INPUTS = {
    "x": "float32|bfloat16|float16[M, K]",
    "g": "float32|bfloat16|float16[K]",
    "b": "float32|bfloat16|float16[K]",
    "w": "float32|bfloat16|float16[N, K]",
    "bias": "float32|bfloat16|float16[N]",
    "eps": 1e-5,
}
DIMS = {"M": [1, 16, 200, 1024], "N": [1, 67, 200, 1024], "K": [1, 64, 200, 1024, 10_000]}

LONGEST_BLOCK = 8192
# A row of a block of the product's operands: the widest that shared memory swizzles without bank conflicts.
BLOCK_BYTES = 128


def reference(
    x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """x: [M, K]; g, b: [K]; w: [N, K]; bias: [N], all of one dtype. Returns [M, N] in that dtype."""
    normalised = torch.nn.functional.layer_norm(x, g.shape, g, b, eps)
    return torch.nn.functional.linear(normalised, w, bias)


@triton.jit
def normalised_rows_kernel(
    x_ptr,
    g_ptr,
    b_ptr,
    out_ptr,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    g_stride,
    b_stride,
    out_row_stride,
    BLOCK_N: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """One program normalises one row; BLOCK_N >= n_cols.

    x_ptr: [n_rows, n_cols], any strides. g_ptr, b_ptr: [n_cols], elements g_stride and b_stride apart.
    out_ptr: [n_rows, n_cols], rows out_row_stride apart. OVERLAPS: the next kernel may start before this one
    ends.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + cols * g_stride, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + cols * b_stride, mask=mask).to(tl.float32)
    centred = tl.where(mask, x - tl.sum(x, axis=0) / n_cols, 0.0)
    # A large mean is rounded coarsely: what it left behind is taken out as well.
    centred = tl.where(mask, centred - tl.sum(centred, axis=0) / n_cols, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * out_row_stride + cols, centred * rstd * g + b, mask=mask)


@triton.jit
def normalised_long_rows_kernel(
    x_ptr,
    g_ptr,
    b_ptr,
    out_ptr,
    n_cols,
    eps,
    x_row_stride,
    x_col_stride,
    g_stride,
    b_stride,
    out_row_stride,
    BLOCK_N: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """One program normalises one row, BLOCK_N columns at a time.

    x_ptr: [n_rows, n_cols], any strides. g_ptr, b_ptr: [n_cols], elements g_stride and b_stride apart.
    out_ptr: [n_rows, n_cols], rows out_row_stride apart. OVERLAPS: the next kernel may start before this one
    ends.

    The columns are shifted by the first block's mean. What remains of the row's mean has a square of at most
    n_cols / BLOCK_N times the variance, so the subtraction of it is harmless.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0).to(tl.int64)
    x_row_ptr = x_ptr + row * x_row_stride
    out_row_ptr = out_ptr + row * out_row_stride
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)

    # Sums for each lane, its columns BLOCK_N apart: they are added up once, after the loop.
    lane_sum = tl.zeros((BLOCK_N,), tl.float32)
    lane_squares = tl.zeros((BLOCK_N,), tl.float32)
    shift = 0.0
    for start in tl.range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask, other=0.0).to(tl.float32)
        if start == 0:
            shift = tl.sum(x, axis=0) / tl.minimum(n_cols, BLOCK_N)
        shifted = tl.where(mask, x - shift, 0.0)
        lane_sum += shifted
        lane_squares += shifted * shifted
    remainder = tl.sum(lane_sum, axis=0) / n_cols
    mean_square = tl.sum(lane_squares, axis=0) / n_cols
    # Squares that overflow make the variance infinite, as in PyTorch, not inf - inf.
    is_finite = mean_square < float("inf")
    # Of shifted columns the remainder's square is no large number.
    variance = tl.where(is_finite, tl.maximum(tl.fma(-remainder, remainder, mean_square), 0.0), mean_square)
    rstd = tl.rsqrt(variance + eps)

    n_blocks = tl.cdiv(n_cols, BLOCK_N)
    for block in tl.range(0, n_blocks):
        cols = (n_blocks - 1 - block) * BLOCK_N + lanes
        mask = cols < n_cols
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=mask).to(tl.float32)
        g = tl.load(g_ptr + cols * g_stride, mask=mask).to(tl.float32)
        b = tl.load(b_ptr + cols * b_stride, mask=mask).to(tl.float32)
        tl.store(out_row_ptr + cols, (x - shift - remainder) * rstd * g + b, mask=mask)


def set_blocks(arguments: dict[str, Any]) -> None:
    """Gives each descriptor the block of the configuration that is about to run."""
    BLOCK_M, BLOCK_N, BLOCK_K = (arguments[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    arguments["x"].block_shape = [BLOCK_M, BLOCK_K]
    arguments["w"].block_shape = [BLOCK_N, BLOCK_K]
    if isinstance(arguments["out"], TensorDescriptor):
        arguments["out"].block_shape = [BLOCK_M, BLOCK_N // 2]


CONFIGS = [
    triton.Config(
        {"BLOCK_M": block_m, "BLOCK_N": block_n},
        num_warps=num_warps,
        num_stages=num_stages,
        pre_hook=set_blocks,
    )
    for block_m, block_n, num_warps, num_stages in [
        (16, 64, 4, 5),
        (64, 64, 4, 4),
        (64, 128, 4, 4),
        (128, 128, 8, 4),
        (128, 256, 8, 3),
        (128, 256, 8, 4),
    ]
]


def worth_trying(
    configs: Sequence[triton.Config], arguments: Mapping[str, Any], **options: Any
) -> list[triton.Config]:
    """Leaves out blocks wider than the output and, in float32, those whose split operands would spill."""
    most_rows = triton.next_power_of_2(arguments["M"])
    most_cols = triton.next_power_of_2(arguments["N"])
    largest = 128 * 128 if options["BLOCK_K"] == BLOCK_BYTES // 4 else 128 * 256
    smallest, *others = configs
    return [smallest] + [
        config
        for config in others
        if config.kwargs["BLOCK_M"] <= most_rows
        and config.kwargs["BLOCK_N"] <= most_cols
        and config.kwargs["BLOCK_M"] * config.kwargs["BLOCK_N"] <= largest
    ]


@triton.jit
def store_block(matrix, row, col, block, n_rows, n_cols, LAYOUT: tl.constexpr):
    """Writes what of the block lies within a contiguous matrix [n_rows, n_cols], from (row, col) on.

    matrix: a descriptor of it (LAYOUT "rows") or a pointer ("pointers").
    """
    if LAYOUT == "rows":
        matrix.store([row, col], block.to(matrix.dtype))
    else:
        rows = tl.arange(0, block.shape[0]).to(tl.int64)[:, None] + row
        cols = tl.arange(0, block.shape[1]).to(tl.int64)[None, :] + col
        tl.store(matrix + rows * n_cols + cols, block, mask=(rows < n_rows) & (cols < n_cols))


@triton.autotune(
    CONFIGS,
    # BLOCK_K stands for the dtype, which descriptors hide from the tuner.
    key=["M", "N", "K", "BLOCK_K"],
    prune_configs_by={"early_config_prune": worth_trying},
)
@triton.jit
def linear_kernel(
    x,
    w,
    bias_ptr,
    out,
    M,
    N,
    K,
    bias_stride,
    OUT_LAYOUT: tl.constexpr,
    INPUT_PRECISION: tl.constexpr,
    GROUP_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    OVERLAPS: tl.constexpr,
):
    """Program p computes blocks p, p + n_programs, ... of out, each BLOCK_M x BLOCK_N.

    x: a descriptor of [M, K], w: one of [N, K]; beyond their edges they read zeros. bias_ptr: [N], elements
    bias_stride apart. out: [M, N], contiguous, a descriptor (OUT_LAYOUT "rows") or a pointer ("pointers").
    OVERLAPS: the kernel before this one may still run.
    """
    if OVERLAPS:
        tl.extra.cuda.gdc_wait()
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    for i in tl.range(tl.program_id(0), blocks_m * blocks_n, tl.num_programs(0), flatten=True):
        # Blocks of GROUP_M rows are computed at a time: they share x and w in the L2 cache.
        block_m, block_n = tl.swizzle2d(i // blocks_n, i % blocks_n, blocks_m, blocks_n, GROUP_M)
        row = block_m * BLOCK_M
        col = block_n * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in tl.range(0, K, BLOCK_K):
            total = tl.dot(x.load([row, k]), w.load([col, k]).T, total, input_precision=INPUT_PRECISION)
        cols = col.to(tl.int64) + tl.arange(0, BLOCK_N)
        bias = tl.load(bias_ptr + cols * bias_stride, mask=cols < N, other=0.0).to(tl.float32)
        total += bias[None, :]
        # By halves, which take half the shared memory on their way: what they leave is a stage more.
        left, right = tl.split(total.reshape(BLOCK_M, 2, BLOCK_N // 2).permute(0, 2, 1))
        store_block(out, row, col, left, M, N, OUT_LAYOUT)
        store_block(out, row, col + BLOCK_N // 2, right, M, N, OUT_LAYOUT)


def layer_norm_linear(
    x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """x: [M, K]; g, b: [K]; w: [N, K]; bias: [N], of one dtype, any strides. Returns [M, N], contiguous."""
    M, K = x.shape
    N = w.shape[0]
    out = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    if K == 0:
        return out.copy_(bias)
    device = device_in_use(triton.runtime.driver.active.get_current_device())
    normalised = aligned_rows(M, K, x)
    BLOCK_N = min(triton.next_power_of_2(K), LONGEST_BLOCK)
    normalise = normalised_rows_kernel if K <= BLOCK_N else normalised_long_rows_kernel
    normalise[(M,)](
        x,
        g,
        b,
        normalised,
        K,
        eps,
        *x.stride(),
        g.stride(0),
        b.stride(0),
        normalised.stride(0),
        BLOCK_N=BLOCK_N,
        OVERLAPS=device.launches_overlap,
        num_warps=max(BLOCK_N // 1024, 4),
    )
    if not is_describable(w):
        w = aligned_rows(N, K, w).copy_(w)

    def grid(config: Mapping[str, int]) -> tuple[int]:
        """Programs that have equally many blocks, one for each multiprocessor at most."""
        blocks = triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"])
        return (triton.cdiv(blocks, triton.cdiv(blocks, device.multiprocessors)),)

    launch = {"launch_pdl": True} if device.launches_overlap else {}
    linear_kernel[grid](
        TensorDescriptor.from_tensor(normalised, [1, 1]),
        TensorDescriptor.from_tensor(w, [1, 1]),
        bias,
        TensorDescriptor.from_tensor(out, [1, 1]) if is_describable(out) else out,
        M,
        N,
        K,
        bias.stride(0),
        OUT_LAYOUT="rows" if is_describable(out) else "pointers",
        INPUT_PRECISION=device.float32_precision,
        GROUP_M=16,
        BLOCK_K=BLOCK_BYTES // x.element_size(),
        OVERLAPS=device.launches_overlap,
        **launch,
    )
    return out


class Device(NamedTuple):
    """What matters here of the device in use."""

    multiprocessors: int
    launches_overlap: bool
    """Whether a kernel may start while the one before it ends."""
    float32_precision: str
    """What `tl.dot` is asked for, for float32 operands."""


@functools.cache
def device_in_use(index: int) -> Device:
    """Asked once for each device."""
    target = triton.runtime.driver.active.get_current_target()
    if target.backend == "cpu":
        # The interpreter: its products are float32 already, and two programs show all.
        return Device(multiprocessors=2, launches_overlap=False, float32_precision="ieee")
    limits = triton.runtime.driver.active.utils.get_device_properties(index)
    overlap = target.backend == "cuda" and target.arch >= 90
    return Device(limits["multiprocessor_count"], overlap, float32_precision="bf16x6")


def aligned_rows(n_rows: int, n_cols: int, like: torch.Tensor) -> torch.Tensor:
    """Memory for [n_rows, n_cols] of like's dtype, each row 16 bytes aligned, as a descriptor wants it."""
    elements = 16 // like.element_size()
    return like.new_empty((n_rows, triton.cdiv(n_cols, elements) * elements))[:, :n_cols]


def is_describable(matrix: torch.Tensor) -> bool:
    """Whether a descriptor can read it in place: adjacent columns, separate rows, all 16 bytes aligned."""
    row_stride, col_stride = matrix.stride()
    return (
        col_stride == 1
        and row_stride >= matrix.shape[1]
        and row_stride * matrix.element_size() % 16 == 0
        and matrix.data_ptr() % 16 == 0
    )


def fake_layer_norm_linear(x, g, b, w, bias, eps):
    """A tensor of the shape and dtype that layer_norm_linear returns."""
    return x.new_empty((x.shape[0], w.shape[0]))


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("layer_norm_linear(Tensor x, Tensor g, Tensor b, Tensor w, Tensor bias, float eps) -> Tensor")
library.impl("layer_norm_linear", layer_norm_linear, "CompositeExplicitAutograd")
torch.library.register_fake("reference_kernels::layer_norm_linear", fake_layer_norm_linear, lib=library)


def run(
    x: torch.Tensor, g: torch.Tensor, b: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """x: [M, K]; g, b: [K]; w: [N, K]; bias: [N], of one dtype, any strides. Returns [M, N], contiguous.

    Of w a copy is made where a descriptor cannot read it in place.
    """
    return torch.ops.reference_kernels.layer_norm_linear(x, g, b, w, bias, eps)
