"""Sentence embeddings: the mean of the token vectors that the attention mask keeps, with its gradient."""

import torch
import triton
import triton.language as tl


@triton.jit
def pool_fwd_kernel(
    hidden_ptr, mask_ptr, out_ptr, count_ptr, seq_len, dim, BLOCK_L: tl.constexpr, BLOCK_D: tl.constexpr
):
    """hidden_ptr: [B, L, D], mask_ptr: [B, L] (integers, not 0 = keep), out_ptr: [B, D], all contiguous.

    count_ptr: [B], float32, the number of tokens kept; the first column of programs writes it.
    """
    col = tl.program_id(0)
    batch = tl.program_id(1).to(tl.int64)
    d = col * BLOCK_D + tl.arange(0, BLOCK_D)
    rows = tl.arange(0, BLOCK_L)

    acc = tl.zeros((BLOCK_D,), tl.float32)
    kept = tl.zeros((BLOCK_L,), tl.float32)
    for start in tl.range(0, seq_len, BLOCK_L):
        t = start + rows
        keep = tl.load(mask_ptr + batch * seq_len + t, mask=t < seq_len, other=0) != 0
        offs = (batch * seq_len + t)[:, None] * dim + d[None, :]
        h = tl.load(hidden_ptr + offs, mask=keep[:, None] & (d < dim)[None, :], other=0.0)
        acc += tl.sum(h.to(tl.float32), axis=0)
        kept += keep.to(tl.float32)

    count = tl.sum(kept, axis=0)
    tl.store(out_ptr + batch * dim + d, acc / count, mask=d < dim)
    tl.store(count_ptr + batch, count, mask=col == 0)


@triton.jit
def pool_bwd_kernel(
    grad_ptr, mask_ptr, count_ptr, dhidden_ptr, seq_len, dim, BLOCK_L: tl.constexpr, BLOCK_D: tl.constexpr
):
    """dhidden[b, l, :] = grad[b, :] / count[b] where token l is kept, else 0."""
    d = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    batch = tl.program_id(1).to(tl.int64)
    t = tl.program_id(2) * BLOCK_L + tl.arange(0, BLOCK_L)

    grad = tl.load(grad_ptr + batch * dim + d, mask=d < dim, other=0.0).to(tl.float32)
    grad /= tl.maximum(tl.load(count_ptr + batch), 1.0)
    keep = tl.load(mask_ptr + batch * seq_len + t, mask=t < seq_len, other=0) != 0
    dh = tl.where(keep[:, None], grad[None, :], 0.0)
    offs = (batch * seq_len + t)[:, None] * dim + d[None, :]
    tl.store(dhidden_ptr + offs, dh, mask=(t < seq_len)[:, None] & (d < dim)[None, :])


class MaskedMeanPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, seq_len, dim = hidden.shape
        hidden, mask = hidden.contiguous(), mask.contiguous()
        out = torch.empty((batch, dim), dtype=hidden.dtype, device=hidden.device)
        count = torch.empty((batch,), dtype=torch.float32, device=hidden.device)
        block_d = min(128, triton.next_power_of_2(dim))
        grid = (triton.cdiv(dim, block_d), batch)
        pool_fwd_kernel[grid](
            hidden, mask, out, count, seq_len, dim, BLOCK_L=32, BLOCK_D=block_d, num_warps=4
        )
        ctx.save_for_backward(mask, count)
        ctx.shape = hidden.shape
        return out

    @staticmethod
    def backward(ctx, grad: torch.Tensor):
        mask, count = ctx.saved_tensors
        batch, seq_len, dim = ctx.shape
        grad = grad.contiguous()
        d_hidden = torch.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        block_d = min(128, triton.next_power_of_2(dim))
        grid = (triton.cdiv(dim, block_d), batch, triton.cdiv(seq_len, 32))
        pool_bwd_kernel[grid](
            grad, mask, count, d_hidden, seq_len, dim, BLOCK_L=32, BLOCK_D=block_d, num_warps=4
        )
        return d_hidden, None


def masked_mean_pool(hidden: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """hidden: [B, L, D], attention_mask: [B, L], int64, 1 = token, 0 = padding. Returns [B, D].

    A sequence without a single token gets a vector of zeros.
    """
    if attention_mask.shape != hidden.shape[:2]:
        raise ValueError("attention_mask must have the first two dimensions of hidden")
    return MaskedMeanPool.apply(hidden, attention_mask)
