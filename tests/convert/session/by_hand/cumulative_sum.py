"""A cumulative sum along rows, and its kernel as somebody would write it by hand."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [1, 5], "N": [1, 33, 300]}
BUG = ("carry += tl.sum(x, axis=0)", "carry = tl.sum(x, axis=0)")


def target(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x, dim=-1)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 128}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=8)],
    key=["N"],
)
@triton.jit
def row_scan_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Scan a row in blocks. x_ptr, out_ptr: [M, N]."""
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for start in range(0, N, BLOCK):
        col = start + tl.arange(0, BLOCK)
        mask = col < N
        x = tl.load(x_ptr + row * N + col, mask=mask, other=0.0)
        tl.store(out_ptr + row * N + col, carry + tl.cumsum(x, axis=0), mask=mask)
        carry += tl.sum(x, axis=0)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    M, N = x.shape
    if x.numel():
        row_scan_kernel[(M,)](x, out, N)
    return out
