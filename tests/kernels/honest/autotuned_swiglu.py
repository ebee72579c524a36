"""Honest: the kernel is autotuned over several configurations."""

import torch
import triton
import triton.language as tl

INPUTS = {"gate": "float32|bfloat16[M, N]", "up": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 5, 40], "N": [1, 64, 300]}

CONFIGS = [
    triton.Config({"BLOCK_M": 1, "BLOCK_N": 128}, num_warps=2),
    triton.Config({"BLOCK_M": 4, "BLOCK_N": 64}, num_warps=4),
    triton.Config({"BLOCK_M": 8, "BLOCK_N": 128}, num_warps=8),
]


def reference(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gate, up: [M, N]. Returns silu(gate) * up, [M, N], in gate's dtype."""
    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)


@triton.autotune(configs=CONFIGS, key=["n_rows", "n_cols"])
@triton.jit
def swiglu_kernel(
    gate_ptr,
    up_ptr,
    out_ptr,
    n_rows,
    n_cols,
    gate_stride_m,
    gate_stride_n,
    up_stride_m,
    up_stride_n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Program (i, j) computes one BLOCK_M x BLOCK_N tile of out_ptr: [n_rows, n_cols], contiguous."""
    rows = (tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M))[:, None]
    cols = (tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    gate = tl.load(gate_ptr + rows * gate_stride_m + cols * gate_stride_n, mask=mask, other=0.0)
    up = tl.load(up_ptr + rows * up_stride_m + cols * up_stride_n, mask=mask, other=0.0)
    gate = gate.to(tl.float32)
    out = gate / (1.0 + tl.exp(-gate)) * up.to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, out, mask=mask)


def run(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = gate.shape
    out = torch.empty((n_rows, n_cols), dtype=gate.dtype, device=gate.device)
    if out.numel() == 0:
        return out

    def grid(meta: dict) -> tuple[int, int]:
        return triton.cdiv(n_rows, meta["BLOCK_M"]), triton.cdiv(n_cols, meta["BLOCK_N"])

    swiglu_kernel[grid](gate, up, out, n_rows, n_cols, *gate.stride(), *up.stride())
    return out
