"""The gate of a mixture of eight experts: the two largest logits, softmaxed, in a dense row of weights."""

import torch
import triton
import triton.language as tl

INPUTS = {"logits": "float32[T, 8]"}
DIMS = {"T": [1, 33, 200]}
BUG = ('-float("inf"), logits)', "0.0, logits)")


def target(logits: torch.Tensor) -> torch.Tensor:
    second = torch.topk(logits, 2, dim=-1).values[:, 1:]
    return torch.softmax(logits.masked_fill(logits < second, float("-inf")), dim=-1)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 16}, num_warps=1), triton.Config({"BLOCK": 64}, num_warps=4)], key=["T"]
)
@triton.jit
def top_two_kernel(logits_ptr, out_ptr, T, BLOCK: tl.constexpr):
    """Softmax of the two largest of each row; equal ones all take part. logits_ptr, out_ptr: [T, 8]."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, 8)
    mask = row[:, None] < T
    offset = row[:, None] * 8 + col[None, :]
    logits = tl.load(logits_ptr + offset, mask=mask, other=0.0)
    rank = tl.sum((logits[:, None, :] > logits[:, :, None]).to(tl.int32), axis=2)
    unknown = tl.sum((logits != logits).to(tl.int32), axis=1) > 0
    kept = tl.where(rank >= 2, -float("inf"), logits)
    weight = tl.exp(kept - tl.max(kept, axis=1)[:, None])
    out = weight / tl.sum(weight, axis=1)[:, None]
    tl.store(out_ptr + offset, tl.where(unknown[:, None], float("nan"), out), mask=mask)


def run(logits: torch.Tensor) -> torch.Tensor:
    logits = logits.contiguous()
    out = torch.empty_like(logits)
    if T := logits.shape[0]:
        top_two_kernel[lambda meta: (triton.cdiv(T, meta["BLOCK"]),)](logits, out, T)
    return out
