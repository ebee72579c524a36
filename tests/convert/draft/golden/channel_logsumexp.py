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
    INDEX: tl.constexpr,
):
    """Compute out; what is reduced is in registers."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(H, BLOCK_N)
    pid_col = pid % n_col_blocks
    outer = pid // n_col_blocks
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    row = tl.arange(0, BLOCK_K)
    row_mask = row < S
    col_mask = col < H
    mask = row_mask[:, None] & col_mask[None, :]
    energies = tl.load(
        energies_ptr + (outer * S + row[:, None]) * H + col[None, :],
        mask=mask,
        other=-float("inf"),
    ).to(tl.float32)
    energies_max = tl.max(energies, axis=0)
    chosen = tl.where(tl.abs(energies_max) == float("inf"), 0.0, energies_max)
    out = tl.log(tl.sum(tl.exp(energies - chosen[None, :]), axis=0)) + chosen
    tl.store(out_ptr + outer * H + col, out, mask=col_mask)


@triton.jit
def channel_logsumexp_online_kernel(
    energies_ptr,
    out_ptr,
    S,
    H,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Compute out in one pass."""
    pid = tl.program_id(0).to(INDEX)
    n_col_blocks = tl.cdiv(H, BLOCK_N)
    pid_col = pid % n_col_blocks
    outer = pid // n_col_blocks
    col = pid_col * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = col < H
    energies_max = tl.full([BLOCK_N], -float("inf"), tl.float32)
    energies_sum = tl.zeros([BLOCK_N], tl.float32)
    for start in range(0, S, BLOCK_K):
        row = start + tl.arange(0, BLOCK_K)
        row_mask = row < S
        mask = row_mask[:, None] & col_mask[None, :]
        energies = tl.load(
            energies_ptr + (outer * S + row[:, None]) * H + col[None, :],
            mask=mask,
            other=-float("inf"),
        ).to(tl.float32)
        new_max = tl.maximum(energies_max, tl.max(energies, axis=0))
        shift = tl.where(tl.abs(new_max) == float("inf"), 0.0, new_max)
        rescale = tl.exp(energies_max - shift)
        p = tl.exp(energies - shift[None, :])
        energies_sum = energies_sum * rescale + tl.sum(p, axis=0)
        energies_max = new_max
    out = tl.log(energies_sum) + tl.where(tl.abs(energies_max) == float("inf"), 0.0, energies_max)
    tl.store(out_ptr + outer * H + col, out, mask=col_mask)


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
    device = energies.device
    with torch.cuda.device_of(energies):
        energies = energies.contiguous()
        out = torch.empty((B, H), device=device, dtype=energies.dtype)
        if S <= 512:
            block_k = 1 << (S - 1).bit_length()
            block_n = max(2048 // block_k, 16)
            channel_logsumexp_kernel[(B * ((H + block_n - 1) // block_n),)](
                energies, out, S, H, BLOCK_N=block_n, BLOCK_K=block_k, INDEX=dtype_of_offsets(energies),
                num_warps=4,
            )
        else:
            channel_logsumexp_online_kernel[(B * ((H + 63) // 64),)](
                energies, out, S, H, BLOCK_N=64, BLOCK_K=32, INDEX=dtype_of_offsets(energies), num_warps=8,
            )
        return out
