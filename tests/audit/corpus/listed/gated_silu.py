"""out = silu(gate + bias) * up, the middle of a gated feed-forward layer. Computed in float32."""

import torch
import triton
import triton.language as tl

INPUTS = {
    "gate": "float32|bfloat16|float16[M, N]",
    "up": "float32|bfloat16|float16[M, N]",
    "bias": "float32|bfloat16|float16[N]",
}
DIMS = {"M": [1, 100, 2048], "N": [16, 1000, 4096]}

BLOCK_N = 1024


def reference(gate: torch.Tensor, up: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """gate, up: [M, N], bias: [N]. Returns [M, N] in gate's dtype."""
    act = torch.nn.functional.silu(gate.float() + bias.float())
    return (act * up.float()).to(gate.dtype)


@triton.jit
def bias_silu_kernel(gate_ptr, bias_ptr, act_ptr, n_cols, gate_row_stride, act_row_stride, BLOCK: tl.constexpr):
    """act = silu(gate + bias). The last axis of every tensor has stride 1."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    g = tl.load(gate_ptr + row * gate_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    g += b
    tl.store(act_ptr + row * act_row_stride + cols, g * tl.sigmoid(g), mask=mask)


@triton.jit
def mul_kernel(act_ptr, up_ptr, out_ptr, n_cols, act_row_stride, up_row_stride, out_row_stride, BLOCK: tl.constexpr):
    """out = act * up. The last axis of every tensor has stride 1."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    a = tl.load(act_ptr + row * act_row_stride + cols, mask=mask, other=0.0)
    u = tl.load(up_ptr + row * up_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * out_row_stride + cols, a * u, mask=mask)


def run(gate: torch.Tensor, up: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """gate, up: [M, N], bias: [N]. Returns [M, N], contiguous, in gate's dtype."""
    n_rows, n_cols = gate.shape
    gate = gate if gate.stride(1) == 1 else gate.contiguous()
    up = up if up.stride(1) == 1 else up.contiguous()
    bias = bias.contiguous()
    act = torch.empty((n_rows, n_cols), dtype=torch.float32, device=gate.device)
    out = torch.empty((n_rows, n_cols), dtype=gate.dtype, device=gate.device)
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    bias_silu_kernel[grid](gate, bias, act, n_cols, gate.stride(0), act.stride(0), BLOCK=BLOCK_N)
    mul_kernel[grid](act, up, out, n_cols, act.stride(0), up.stride(0), out.stride(0), BLOCK=BLOCK_N)
    return out
