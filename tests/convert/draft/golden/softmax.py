"""softmax in Triton, stage 3 of 3 (tuned).

Drafted from examples/softmax.py:softmax. Shapes:

    logits: [M, N]
    ->
    out: [M, N]
"""

import math

import torch
import triton
import triton.language as tl

INPUTS = {"logits": "float32|bfloat16[M, N]", "temperature": 0.7}
DIMS = {"M": [1, 7, 64], "N": [1, 33, 1000]}
REQUIRES = ["N <= 16384"]
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
    ALIGNMENT: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Compute out; what is reduced is in registers."""
    # The compiler sees a multiple of ALIGNMENT, so that a load may take several elements.
    N = N // ALIGNMENT * ALIGNMENT
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < N
    mask = row_mask[:, None] & col_mask[None, :]
    logits = tl.load(logits_ptr + row[:, None] * N + col[None, :], mask=mask).to(tl.float32)
    scaled = logits / temperature
    scaled_max = tl.max(tl.where(col_mask[None, :], scaled, -float("inf")), axis=1)
    numerator = tl.exp(scaled - scaled_max[:, None])
    denominator = tl.sum(tl.where(col_mask[None, :], numerator, 0.0), axis=1)
    out = numerator / denominator[:, None]
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)


def dtype_of_offsets(*tensors):
    """Offsets take 64 bits only where a tensor is that large: divisions of indices are slower then."""
    return tl.int64 if max(t.numel() for t in tensors) > 2**31 - 2**16 else tl.int32


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
    with torch.cuda.device_of(logits):
        assert N <= 16384, "drafted for N <= 16384; convert again with larger sizes"
        logits = logits.contiguous()
        out = torch.empty_like(logits)
        block_n = 1 << (N - 1).bit_length()
        block_m = max(2048 // block_n, 1)
        num_warps = min(max(block_m * block_n // 512, 1), 16)
        # Fused multiply-adds would round one side of a difference and not the other.
        softmax_kernel[((M + block_m - 1) // block_m,)](
            logits, out, M, N, temperature, BLOCK_M=block_m, BLOCK_N=block_n, ALIGNMENT=math.gcd(N, 16),
            INDEX=dtype_of_offsets(logits), num_warps=num_warps, enable_fp_fusion=False,
        )
        return out
