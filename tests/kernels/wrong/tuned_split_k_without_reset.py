"""Wrong: partial products of an autotuned split-K kernel are added up at every run on trial."""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "float32|bfloat16[M, K]", "b": "float32|bfloat16[K]"}
DIMS = {"M": [1, 9, 40], "K": [1, 60, 200]}


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: [M, K], b: [K]. Returns a @ b, float32 [M]."""
    return a.float() @ b.float()


@triton.autotune(
    [triton.Config({"BLOCK_M": 16, "SPLIT_K": 2}), triton.Config({"BLOCK_M": 8, "SPLIT_K": 4})],
    key=["n_rows", "n_inner"],
)
@triton.jit
def split_product_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    n_rows,
    n_inner,
    a_row_stride,
    a_col_stride,
    b_stride,
    BLOCK_M: tl.constexpr,
    SPLIT_K: tl.constexpr,
):
    """Program (i, j) adds every SPLIT_K-th chunk of 32 products to BLOCK_M elements of out_ptr: [n_rows]."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros([BLOCK_M], tl.float32)
    for start in range(tl.program_id(1) * 32, n_inner, SPLIT_K * 32):
        inner = start + tl.arange(0, 32).to(tl.int64)
        mask = (rows < n_rows)[:, None] & (inner < n_inner)[None, :]
        a = tl.load(
            a_ptr + rows[:, None] * a_row_stride + inner[None, :] * a_col_stride, mask=mask, other=0.0
        )
        b = tl.load(b_ptr + inner * b_stride, mask=inner < n_inner, other=0.0)
        total += tl.sum(a.to(tl.float32) * b.to(tl.float32)[None, :], axis=1)
    tl.atomic_add(out_ptr + rows, total, mask=rows < n_rows, sem="relaxed")


def run(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n_rows, n_inner = a.shape
    out = torch.zeros(n_rows, dtype=torch.float32, device=a.device)
    if a.numel() > 0:
        split_product_kernel[lambda meta: (triton.cdiv(n_rows, meta["BLOCK_M"]), meta["SPLIT_K"])](
            a, b, out, n_rows, n_inner, a.stride(0), a.stride(1), b.stride(0)
        )
    return out
