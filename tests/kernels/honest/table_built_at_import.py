"""Honest: a lookup table is built when the file is imported, and moved to the input's device in run."""

import torch
import triton
import triton.language as tl

INPUTS = {"codes": "uint8[M, N] in 0..16", "scale": "float32[M]"}
DIMS = {"M": [1, 7], "N": [1, 64, 100, 300]}

# The sixteen values of the 4-bit format NF4.
LEVELS = torch.tensor(
    [
        *(-1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0),
        *(0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0),
    ]
)


def reference(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """codes: uint8 [M, N], each below 16; scale: [M]. Returns [M, N]: NF4 values, scaled by row."""
    return LEVELS.to(scale)[codes.long()] * scale[:, None]


@triton.jit
def decode_kernel(
    codes_ptr,
    levels_ptr,
    scale_ptr,
    out_ptr,
    n_cols,
    codes_row_stride,
    codes_col_stride,
    scale_stride,
    BLOCK_N: tl.constexpr,
):
    """Program (row, tile) decodes BLOCK_N columns of a row. levels_ptr: [16]; out_ptr: contiguous."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    codes = tl.load(codes_ptr + row * codes_row_stride + cols * codes_col_stride, mask=mask, other=0)
    levels = tl.load(levels_ptr + codes.to(tl.int32))
    scale = tl.load(scale_ptr + row * scale_stride)
    tl.store(out_ptr + row * n_cols + cols, levels * scale, mask=mask)


def run(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """codes: uint8 [M, N], any strides; scale: [M], any stride. Returns float32 [M, N], contiguous."""
    n_rows, n_cols = codes.shape
    out = torch.empty((n_rows, n_cols), dtype=scale.dtype, device=codes.device)
    if out.numel() == 0:
        return out
    BLOCK_N = min(256, triton.next_power_of_2(n_cols))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    levels = LEVELS.to(codes.device)
    strides = (*codes.stride(), scale.stride(0))
    decode_kernel[grid](codes, levels, scale, out, n_cols, *strides, BLOCK_N=BLOCK_N)
    return out
