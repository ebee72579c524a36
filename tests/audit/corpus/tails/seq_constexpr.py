import torch
import triton
import triton.language as tl


@triton.jit
def shift_kernel(
    tokens,
    out,
    BATCH,
    SEQ: tl.constexpr,
    BLOCK: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    for s in range(0, SEQ, BLOCK):
        i = s + tl.arange(0, BLOCK)
        t = tl.load(tokens + b * SEQ + i - 1, mask=(i > 0) & (i < SEQ), other=0)
        tl.store(out + b * SEQ + i, t, mask=i < SEQ)


def shift_right(tokens: torch.Tensor) -> torch.Tensor:
    tokens = tokens.contiguous()
    out = torch.empty_like(tokens)
    batch, seq = tokens.shape
    shift_kernel[(batch,)](tokens, out, batch, SEQ=seq, BLOCK=256)
    return out
