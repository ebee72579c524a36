"""channel_logsumexp in Triton, stage 3 of 3 (tuned).

Drafted from examples/channel_logsumexp.py:channel_logsumexp. Shapes:

    energies: [B, S, H]
    ->
    out: [B, H]
"""

import torch
import triton
import triton.language as tl

INPUTS = {"energies": "float32|bfloat16[B, S, H]"}
DIMS = {"B": [1, 3], "S": [1, 33, 500], "H": [1, 7, 64]}
DTYPES = (torch.float32, torch.bfloat16)


def reference(energies: torch.Tensor) -> torch.Tensor:
    """energies: [B, S, H]. Returns [B, H]."""
    return torch.logsumexp(energies, dim=1)


@triton.jit
def channel_logsumexp_kernel(
    energies_ptr,
    out_ptr,
    S,
    H,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Compute out in one pass over each column."""
    pid = tl.program_id(0).to(tl.int64)
    n_col_blocks = tl.cdiv(H, BLOCK_K)
    outer = pid // n_col_blocks
    col = pid % n_col_blocks * BLOCK_K + tl.arange(0, BLOCK_K)[None, :]
    col_mask = col < H
    row = tl.arange(0, BLOCK_N)[:, None]
    row_mask = row < S
    mask = row_mask & col_mask
    energies = tl.load(
        energies_ptr + outer * S * H + row.to(tl.int64) * H + col,
        mask=mask,
        other=-float("inf"),
    ).to(tl.float32)
    energies_max = tl.max(energies, axis=0, keep_dims=True)
    energies_shift = tl.where(tl.abs(energies_max) == float("inf"), 0.0, energies_max)
    energies_exp_sum = tl.sum(tl.exp(energies - energies_shift), axis=0, keep_dims=True)
    out = energies_shift + tl.log(energies_exp_sum)
    tl.store(out_ptr + outer * H + col, out, mask=col_mask)


@triton.jit
def channel_logsumexp_tall_kernel(
    energies_ptr,
    out_ptr,
    S,
    H,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Compute out in one pass over each column."""
    pid = tl.program_id(0).to(tl.int64)
    n_col_blocks = tl.cdiv(H, BLOCK_K)
    outer = pid // n_col_blocks
    col = pid % n_col_blocks * BLOCK_K + tl.arange(0, BLOCK_K)[None, :]
    col_mask = col < H
    energies_max_acc = tl.full([BLOCK_N, BLOCK_K], -float("inf"), tl.float32)
    energies_exp_sum_acc = tl.zeros([BLOCK_N, BLOCK_K], tl.float32)
    for start in range(0, S, BLOCK_N):
        row = start + tl.arange(0, BLOCK_N)[:, None]
        row_mask = row < S
        mask = row_mask & col_mask
        energies = tl.load(
            energies_ptr + outer * S * H + row.to(tl.int64) * H + col,
            mask=mask,
            other=-float("inf"),
        ).to(tl.float32)
        new_max = tl.maximum(energies_max_acc, energies)
        shift = tl.where(tl.abs(new_max) == float("inf"), 0.0, new_max)
        energies_exp_sum_acc = (
            energies_exp_sum_acc
            * tl.exp(energies_max_acc - shift)
            + tl.exp(energies - shift)
        )
        energies_max_acc = new_max
    energies_max = tl.max(energies_max_acc, axis=0, keep_dims=True)
    energies_max = tl.where(tl.abs(energies_max) == float("inf"), 0.0, energies_max)
    energies_exp_sum = tl.sum(
        energies_exp_sum_acc * tl.exp(energies_max_acc - energies_max),
        axis=0,
        keep_dims=True,
    )
    out = energies_max + tl.log(energies_exp_sum)
    tl.store(out_ptr + outer * H + col, out, mask=col_mask)


def check_inputs(**tensors):
    """Refuse tensors that the kernels were not drafted for."""
    device = next(iter(tensors.values())).device
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES:
            drafted = " and ".join(str(dtype) for dtype in DTYPES)
            raise TypeError(
                f"channel_logsumexp was drafted for {drafted} {name}; got {tensor.dtype}. "
                "Convert again for that dtype."
            )
        if tensor.device != device:
            raise ValueError(f"{name} is on {tensor.device}, not on {device}. Move it there.")
        if tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{name} requires grad, and channel_logsumexp was drafted without a backward. "
                f"Use torch.no_grad() or {name}.detach(), or train with the PyTorch function."
            )


def run(energies):
    """The same as `reference`, by the kernels above."""
    check_inputs(energies=energies)
    B, S, H = energies.shape
    energies = energies.contiguous()
    out = torch.empty((B, H), device=energies.device, dtype=energies.dtype)
    if S <= 1024:
        block_n = triton.next_power_of_2(max(S, 1))
        block_k = max(8192 // block_n, 32)
        num_warps = min(max(block_n * block_k // 1024, 1), 16)
        channel_logsumexp_kernel[(B * triton.cdiv(H, block_k),)](
            energies, out, S, H, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=num_warps,
        )
    else:
        channel_logsumexp_tall_kernel[(B * triton.cdiv(H, 128),)](
            energies, out, S, H, BLOCK_N=64, BLOCK_K=128, num_warps=8,
        )
    return out
