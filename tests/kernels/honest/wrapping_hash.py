"""Honest: an integer hash that relies on 32-bit multiplication wrapping around."""

import torch
import triton
import triton.language as tl

INPUTS = {"keys": "int32[M, N]", "n_buckets": 1009}
DIMS = {"M": [1, 6, 30], "N": [1, 32, 75]}

LOW_32 = 0xFFFFFFFF


def reference(keys: torch.Tensor, n_buckets: int) -> torch.Tensor:
    """keys: int32 [M, N]. Returns the bucket of each key by a 32-bit mixing hash, int32 [M, N]."""
    h = keys.long() & LOW_32
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & LOW_32
    h = ((h ^ (h >> 15)) * 0x846CA68B) & LOW_32
    h = h ^ (h >> 16)
    return (h % n_buckets).int()


@triton.jit
def bucket_kernel(keys_ptr, out_ptr, n_elements, n_cols, n_buckets, stride_m, stride_n, BLOCK: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n_elements
    offsets = (index // n_cols) * stride_m + (index % n_cols) * stride_n
    h = tl.load(keys_ptr + offsets, mask=mask, other=0).to(tl.uint32, bitcast=True)
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    h = h ^ (h >> 16)
    bucket = h.to(tl.int64) % n_buckets
    tl.store(out_ptr + index, bucket.to(tl.int32), mask=mask)


def run(keys: torch.Tensor, n_buckets: int) -> torch.Tensor:
    n_rows, n_cols = keys.shape
    out = torch.empty((n_rows, n_cols), dtype=torch.int32, device=keys.device)
    if out.numel() == 0:
        return out
    BLOCK = 256
    grid = (triton.cdiv(out.numel(), BLOCK),)
    bucket_kernel[grid](keys, out, out.numel(), n_cols, n_buckets, *keys.stride(), BLOCK=BLOCK)
    return out
