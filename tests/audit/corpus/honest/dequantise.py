"""Per-row int8 dequantisation with zero point: out = (q - zero) * scale, in the dtype of scale."""

import torch
import triton
import triton.language as tl

INPUTS = {"q": "int8[M, N] in -128..128", "scale": "float32|float16[M]", "zero": "int8[M] in -128..128"}
DIMS = {"M": [1, 64, 100], "N": [1, 128, 1000]}


def reference(q: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    return ((q.float() - zero.float()[:, None]) * scale.float()[:, None]).to(scale.dtype)


@triton.jit
def dequantise_kernel(q_ptr, scale_ptr, zero_ptr, out_ptr, M, N, stride_qm, stride_om,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = rows < M
    mask = row_mask[:, None] & (cols < N)[None, :]
    q = tl.load(q_ptr + rows[:, None] * stride_qm + cols[None, :], mask=mask, other=0)
    scale = tl.load(scale_ptr + rows, mask=row_mask, other=0.0).to(tl.float32)
    zero = tl.load(zero_ptr + rows, mask=row_mask, other=0).to(tl.float32)
    out = (q.to(tl.float32) - zero[:, None]) * scale[:, None]
    tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)


def run(q: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    q, scale, zero = q.contiguous(), scale.contiguous(), zero.contiguous()
    M, N = q.shape
    out = torch.empty((M, N), dtype=scale.dtype, device=q.device)
    if out.numel() == 0:
        return out
    BLOCK_M, BLOCK_N = 16, 128
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    dequantise_kernel[grid](q, scale, zero, out, M, N, q.stride(0), out.stride(0), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return out
