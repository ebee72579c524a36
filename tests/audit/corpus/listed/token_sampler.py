"""Draws the next token of every sequence of a batch from its row of probabilities (inverse CDF)."""

from typing import Optional

import torch
import triton
import triton.language as tl


@triton.jit
def sample_kernel(probs_ptr, uniform_ptr, token_ptr, n_vocab, stride_row, BLOCK: tl.constexpr):
    """token[r] = the first i with cumsum(probs[r])[i] > uniform[r], one program per row.

    Where rounding leaves the total of a row at or below uniform[r], its last possible token is drawn.
    probs_ptr: [n_rows, n_vocab], float32, stride_row between rows, 1 between columns.
    """
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(uniform_ptr + row)
    probs_row = probs_ptr + row * stride_row
    lanes = tl.arange(0, BLOCK)

    carry = 0.0
    last = 0
    token = -1
    for start in range(0, n_vocab, BLOCK):
        offs = start + lanes
        p = tl.load(probs_row + offs, mask=offs < n_vocab, other=0.0)
        last = tl.maximum(last, tl.max(tl.where(p > 0, offs, 0), axis=0))
        block_sum = tl.sum(p, axis=0)
        if carry + block_sum > target:
            cdf = carry + tl.cumsum(p, axis=0)
            below = tl.sum((cdf <= target).to(tl.int32), axis=0)
            token = tl.minimum(start + below, last)
            break
        carry += block_sum

    token = tl.where(token < 0, last, token)
    tl.store(token_ptr + row, token.to(tl.int64))


def sample_tokens(probs: torch.Tensor, generator: Optional[torch.Generator] = None) -> torch.Tensor:
    """probs: [batch, vocabulary], float32, every row sums to 1. Returns int64 [batch]."""
    if probs.dim() != 2 or probs.dtype != torch.float32:
        raise ValueError("probs must be a float32 matrix")
    if probs.stride(1) != 1:
        probs = probs.contiguous()
    batch, n_vocab = probs.shape
    if n_vocab == 0:
        raise ValueError("the vocabulary is empty")
    uniform = torch.rand(batch, device=probs.device, generator=generator)
    tokens = torch.empty(batch, dtype=torch.int64, device=probs.device)
    block = min(2048, triton.next_power_of_2(n_vocab))
    sample_kernel[(batch,)](
        probs, uniform, tokens, n_vocab, probs.stride(0), BLOCK=block, num_warps=8 if block == 2048 else 4
    )
    return tokens


class TokenSampler:
    """sampler(logits) -> tokens. logits: [batch, vocabulary], of any floating type."""

    def __init__(self, temperature: float = 1.0, generator: Optional[torch.Generator] = None):
        if temperature <= 0:
            raise ValueError("the temperature must be positive")
        self.temperature = temperature
        self.generator = generator

    @torch.no_grad()
    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        probs = torch.softmax(logits.float() / self.temperature, dim=-1)
        return sample_tokens(probs, self.generator)
