"""rms_norm_residual in Triton, stage 3 of 3 (tuned).

Drafted from examples/rms_norm_residual.py:rms_norm_residual. Shapes:

    x: [M, N]
    residual: [M, N]
    weight: [N]
    ->
    out[0]: [M, N]
    out[1]: [M, N]
"""

import math

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16[M, N]",
    "residual": "float32|bfloat16[M, N]",
    "weight": "float32|bfloat16[N]",
    "eps": 1e-06,
}
DIMS = {"M": [1, 7, 64], "N": [1, 33, 1000]}
REQUIRES = ["N <= 16384"]
DTYPES = (torch.float32, torch.bfloat16)


def reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, residual: [M, N]; weight: [N]. Returns the normalised sum and the sum, both [M, N]."""
    h = x + residual
    mean_square = h.float().pow(2).mean(dim=-1, keepdim=True)
    normed = h.float() * torch.rsqrt(mean_square + eps)
    return normed.to(x.dtype) * weight, h


@triton.jit
def rms_norm_residual_kernel(
    x_ptr,
    residual_ptr,
    weight_ptr,
    h_ptr,
    out_ptr,
    M,
    N,
    eps,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    ALIGNMENT: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Compute h, out; a program holds whole rows in registers."""
    # The compiler sees a multiple of ALIGNMENT, so that a load may take several elements.
    N = N // ALIGNMENT * ALIGNMENT
    row = tl.program_id(0).to(INDEX) * BLOCK_M + tl.arange(0, BLOCK_M)
    col = tl.arange(0, BLOCK_N)
    row_mask = row < M
    col_mask = col < N
    mask = row_mask[:, None] & col_mask[None, :]
    x = tl.load(x_ptr + row[:, None] * N + col[None, :], mask=mask, other=0.0).to(tl.float32)
    residual = tl.load(
        residual_ptr + row[:, None] * N + col[None, :],
        mask=mask,
        other=0.0,
    ).to(tl.float32)
    h = x + residual
    tl.store(h_ptr + row[:, None] * N + col[None, :], h, mask=mask)
    mean_square = tl.sum(h * h, axis=1) / N
    normed = h * tl.rsqrt(mean_square + eps)[:, None]
    weight = tl.load(weight_ptr + col, mask=col_mask).to(tl.float32)
    out = normed * weight[None, :]
    tl.store(out_ptr + row[:, None] * N + col[None, :], out, mask=mask)


def cdiv(n, block):
    """How many blocks hold n elements, without the microseconds that triton.cdiv takes on the host."""
    return (n + block - 1) // block


def next_power_of_2(n):
    """The smallest that is not below n, without the microseconds of triton.next_power_of_2."""
    return 1 << (n - 1).bit_length()


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
                f"rms_norm_residual was drafted for {drafted} {name}; got {tensor.dtype}. "
                "Convert again for that dtype."
            )
        if tensor.device != device:
            raise ValueError(f"{name} is on {tensor.device}, not on {device}. Move it there.")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{name} requires grad, and rms_norm_residual was drafted without a backward. "
                f"Use torch.no_grad() or {name}.detach(), or train with the PyTorch function."
            )


def run(x, residual, weight, eps):
    """The same as `reference`, by the kernels above."""
    check_inputs(x=x, residual=residual, weight=weight)
    M, N = x.shape
    assert residual.shape == (M, N), f"residual: {tuple(residual.shape)}"
    assert weight.shape == (N,), f"weight: {tuple(weight.shape)}"
    device = x.device
    with torch.cuda.device_of(x):
        assert N <= 16384, "drafted for N <= 16384; convert again with larger sizes"
        x, residual, weight = x.contiguous(), residual.contiguous(), weight.contiguous()
        h = torch.empty((M, N), device=device, dtype=torch.promote_types(x.dtype, residual.dtype))
        out = torch.empty((M, N), device=device, dtype=torch.promote_types(x.dtype, weight.dtype))
        block_n = next_power_of_2(N)
        block_m = max(2048 // block_n, 1)
        num_warps = min(max(block_m * block_n // 256, 1), 16)
        rms_norm_residual_kernel[(cdiv(M, block_m),)](
            x, residual, weight, h, out, M, N, eps, BLOCK_M=block_m, BLOCK_N=block_n,
            ALIGNMENT=math.gcd(N, 16), INDEX=dtype_of_offsets(x), num_warps=num_warps,
        )
        return out, h
