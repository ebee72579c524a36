import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_window_0_kernel(x_ptr, out_ptr, H, W, n_elements, BLOCK: tl.constexpr, INDEX: tl.constexpr):
    """Taken at any size."""
    i = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    oh = i // ((W - 1) // 2 + 1) % ((H - 1) // 2 + 1)
    ow = i % ((W - 1) // 2 + 1)
    i_mask = i < n_elements
    largest = tl.full([BLOCK], -float("inf"), tl.float32)
    for kh in tl.static_range(3):
        ih = oh * 2 + kh - 1
        mask = (oh * 2 + kh >= 1) & (ih < H)
        for kw in tl.static_range(3):
            iw = ow * 2 + kw - 1
            place = (i // ((W - 1) // 2 + 1) // ((H - 1) // 2 + 1) * H + ih) * W + iw
            inside = mask & ((ow * 2 + kw >= 1) & (iw < W))
            x = tl.load(x_ptr + place, mask=i_mask & inside, other=-float("inf"))
            largest = tl.maximum(largest, x, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + i, largest, mask=i_mask)


@triton.jit
def out_lines_0_kernel(
    x_ptr,
    out_ptr,
    H,
    W,
    n_cols,
    n_rows,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken where (W - 1) // 2 + 1 > 31."""
    pid = tl.program_id(0).to(INDEX)
    n_row_blocks = tl.cdiv(n_rows, BLOCK_M)
    n_col_blocks = tl.cdiv(n_cols, BLOCK_N)
    pid_col = pid % n_col_blocks
    pid_row = pid // n_col_blocks % n_row_blocks
    outer = pid // n_col_blocks // n_row_blocks
    row = pid_row * BLOCK_M + tl.arange(0, BLOCK_M)
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = row < n_rows
    col_mask = col < n_cols
    mask = row_mask[:, None] & col_mask[None, :]
    largest = tl.full([BLOCK_M, BLOCK_N], -float("inf"), tl.float32)
    for kh in tl.static_range(3):
        ih = row * 2 + kh - 1
        mask_2 = (row * 2 + kh >= 1) & (ih < H)
        for kw in tl.static_range(3):
            iw = col * 2 + kw - 1
            mask_3 = (col * 2 + kw >= 1) & (iw < W)
            inside = mask_2[:, None] & mask_3[None, :]
            x_mask = mask & inside
            x = tl.load(
                x_ptr + (outer * H + ih[:, None]) * W + iw[None, :],
                mask=x_mask,
                other=-float("inf"),
            )
            largest = tl.maximum(largest, x, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + (outer * n_rows + row[:, None]) * n_cols + col[None, :], largest, mask=mask)
