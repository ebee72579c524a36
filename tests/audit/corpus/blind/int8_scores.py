"""Dot products of int8 vectors with one query, accumulated in int32."""

import torch
import triton
import triton.language as tl

INPUTS = {"keys": "int8[M, K] in -128..128", "query": "int8[K] in -128..128"}
DIMS = {"M": [1, 33], "K": [64, 500]}


def reference(keys: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    return (keys.double() @ query.double()).to(torch.int32)


@triton.jit
def scores_kernel(keys_ptr, query_ptr, out_ptr, K, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        key = tl.load(keys_ptr + row * stride + k, mask=k < K, other=0)
        query = tl.load(query_ptr + k, mask=k < K, other=0)
        total += key * query
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def run(keys: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    keys, query = keys.contiguous(), query.contiguous()
    M, K = keys.shape
    out = torch.empty(M, dtype=torch.int32, device=keys.device)
    if M == 0:
        return out
    scores_kernel[(M,)](keys, query, out, K, keys.stride(0), BLOCK=128)
    return out
