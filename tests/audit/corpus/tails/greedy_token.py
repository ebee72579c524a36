"""Greedy decoding: the index of the largest logit."""

import torch
import triton
import triton.language as tl


@triton.jit
def greedy_kernel(logits_ptr, token_ptr, vocab, stride, BLOCK_V: tl.constexpr):
    seq = tl.program_id(0).to(tl.int64)
    v = tl.arange(0, BLOCK_V)
    inside = v < vocab
    logits = tl.load(logits_ptr + seq * stride + v, mask=inside, other=0)
    best = tl.argmax(logits, axis=0)
    tl.store(token_ptr + seq, best)


def greedy(logits: torch.Tensor) -> torch.Tensor:
    n, vocab = logits.shape
    tokens = torch.empty(n, dtype=torch.int32, device=logits.device)
    greedy_kernel[(n,)](logits, tokens, vocab, logits.stride(0), BLOCK_V=triton.next_power_of_2(vocab))
    return tokens
