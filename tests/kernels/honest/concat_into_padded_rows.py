"""Honest: takes a list of tensors and None, and returns a view into a buffer whose rows are padded."""

import torch
import triton
import triton.language as tl

INPUTS = {
    "parts": ["float32|bfloat16[M, N]", "float32|bfloat16[M, K]", "float32|bfloat16[M, 3]"],
    "bias": None,
    "relu": True,
}
DIMS = {"M": [1, 7, 30], "N": [1, 64, 100], "K": [1, 17, 70]}

ROW_MULTIPLE = 64


def reference(parts: list[torch.Tensor], bias: torch.Tensor | None, relu: bool) -> torch.Tensor:
    """parts: tensors of [M, *]; bias: None, or [width]. Returns [M, width], the parts side by side."""
    out = torch.cat(parts, dim=1)
    if bias is not None:
        out = out + bias
    return torch.relu(out) if relu else out


@triton.jit
def place_part_kernel(
    part_ptr,
    bias_ptr,
    out_ptr,
    n_cols,
    part_row_stride,
    part_col_stride,
    bias_stride,
    out_row_stride,
    HAS_BIAS: tl.constexpr,
    RELU: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (row, tile) places BLOCK_N columns of a part. bias_ptr, out_ptr: where its columns start."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    values = tl.load(part_ptr + row * part_row_stride + cols * part_col_stride, mask=mask).to(tl.float32)
    if HAS_BIAS:
        values += tl.load(bias_ptr + cols * bias_stride, mask=mask, other=0.0).to(tl.float32)
    if RELU:
        values = tl.where(values < 0, 0.0, values)
    tl.store(out_ptr + row * out_row_stride + cols, values, mask=mask)


def run(parts: list[torch.Tensor], bias: torch.Tensor | None, relu: bool) -> torch.Tensor:
    """parts: tensors of [M, *], any strides; bias: None, or [width]. Returns [M, width], its rows padded."""
    n_rows, width = parts[0].shape[0], sum(part.shape[1] for part in parts)
    padded = triton.cdiv(width, ROW_MULTIPLE) * ROW_MULTIPLE
    buffer = torch.empty((n_rows, padded), dtype=parts[0].dtype, device=parts[0].device)
    first = 0
    for part in parts:
        n_cols = part.shape[1]
        if n_rows > 0 and n_cols > 0:
            BLOCK_N = min(256, triton.next_power_of_2(n_cols))
            place_part_kernel[(n_rows, triton.cdiv(n_cols, BLOCK_N))](
                part,
                None if bias is None else bias[first:],
                buffer[:, first:],
                n_cols,
                *part.stride(),
                0 if bias is None else bias.stride(0),
                buffer.stride(0),
                HAS_BIAS=bias is not None,
                RELU=relu,
                BLOCK_N=BLOCK_N,
            )
        first += n_cols
    return buffer[:, :width]
