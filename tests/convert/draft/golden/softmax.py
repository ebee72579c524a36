"""softmax in Triton, stage 3 of 3 (tuned).

Drafted from examples/softmax.py:softmax. Shapes:

    logits: [M, N]
    ->
    out: [M, N]
"""

import torch
import triton
import triton.language as tl

INPUTS = {"logits": "float32|bfloat16[M, N]", "temperature": 0.7}
DIMS = {"M": [1, 7, 64], "N": [1, 33, 1000]}
DTYPES = (torch.float32, torch.bfloat16)


def reference(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """logits: [M, N]. Returns [M, N]; each row sums to one."""
    scaled = logits / temperature
    return torch.softmax(scaled, dim=-1)


@triton.jit
def softmax_kernel(
    logits_ptr,
    out_ptr,
    M,
    N,
    temperature,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute out in one pass over each row."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    col = tl.arange(0, BLOCK_N)[None, :]
    row_mask = row < M
    col_mask = col < N
    mask = row_mask & col_mask
    logits = tl.load(logits_ptr + row * N + col, mask=mask).to(tl.float32)
    scaled = tl.where(col_mask, logits / temperature, -float("inf"))
    scaled_max = tl.max(scaled, axis=1, keep_dims=True)
    scaled_exp = tl.exp(scaled - scaled_max)
    scaled_exp_sum = tl.sum(scaled_exp, axis=1, keep_dims=True)
    out = scaled_exp / scaled_exp_sum
    tl.store(out_ptr + row * N + col, out, mask=mask)


@triton.jit
def softmax_long_rows_kernel(logits_ptr, out_ptr, N, temperature, BLOCK_N: tl.constexpr):
    """Compute out in 2 passes over each row."""
    row = tl.program_id(0).to(tl.int64)
    scaled_max_acc = tl.full([BLOCK_N], -float("inf"), tl.float32)
    scaled_exp_sum_acc = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        mask = col < N
        logits = tl.load(logits_ptr + row * N + col, mask=mask).to(tl.float32)
        scaled = tl.where(mask, logits / temperature, -float("inf"))
        new_max = tl.maximum(scaled_max_acc, scaled)
        shift = tl.where(tl.abs(new_max) == float("inf"), 0.0, new_max)
        scaled_exp_sum_acc = (
            scaled_exp_sum_acc
            * tl.exp(scaled_max_acc - shift)
            + tl.exp(scaled - shift)
        )
        scaled_max_acc = new_max
    scaled_max = tl.max(scaled_max_acc, axis=0)
    scaled_exp_sum = tl.sum(scaled_exp_sum_acc * tl.exp(scaled_max_acc - scaled_max), axis=0)
    for start in range(0, N, BLOCK_N):
        col = start + tl.arange(0, BLOCK_N)
        mask = col < N
        logits = tl.load(logits_ptr + row * N + col, mask=mask).to(tl.float32)
        scaled = logits / temperature
        out = tl.exp(scaled - scaled_max) / scaled_exp_sum
        tl.store(out_ptr + row * N + col, out, mask=mask)


def check_inputs(**tensors):
    """Refuse tensors that the kernels were not drafted for."""
    device = next(iter(tensors.values())).device
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES:
            drafted = " and ".join(str(dtype) for dtype in DTYPES)
            raise TypeError(
                f"softmax was drafted for {drafted} {name}; got {tensor.dtype}. "
                "Convert again for that dtype."
            )
        if tensor.device != device:
            raise ValueError(f"{name} is on {tensor.device}, not on {device}. Move it there.")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{name} requires grad, and softmax was drafted without a backward. "
                f"Use torch.no_grad() or {name}.detach(), or train with the PyTorch function."
            )


def run(logits, temperature):
    """The same as `reference`, by the kernels above."""
    check_inputs(logits=logits)
    M, N = logits.shape
    logits = logits.contiguous()
    out = torch.empty_like(logits)
    if N <= 16384:
        block_n = triton.next_power_of_2(max(N, 1))
        block_m = max(4096 // block_n, 1)
        num_warps = min(max(block_m * block_n // 512, 1), 32)
        # Fused multiply-adds would round one side of a difference and not the other.
        softmax_kernel[(triton.cdiv(M, block_m),)](
            logits, out, M, N, temperature, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=num_warps,
            enable_fp_fusion=False,
        )
    else:
        # Fused multiply-adds would round one side of a difference and not the other.
        softmax_long_rows_kernel[(M,)](
            logits, out, N, temperature, BLOCK_N=4096, num_warps=8, enable_fp_fusion=False,
        )
    return out
