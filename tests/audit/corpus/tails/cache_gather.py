import torch
import triton
import triton.language as tl

INPUTS = {"cache": "float16[S, H, L, D]", "slot": "int64[B] in 0..S"}
DIMS = {"S": [2, 512], "H": [8, 32], "L": [16, 2048], "D": [64, 128], "B": [1, 4]}


def reference(cache, slot):
    return cache[slot]


@triton.jit
def gather(cache, slot, out, stride_s, n, BLOCK: tl.constexpr):
    b = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s = tl.load(slot + b).to(tl.int32)
    v = tl.load(cache + s * stride_s + i, mask=i < n)
    tl.store(out + b * n + i, v, mask=i < n)


def run(cache, slot):
    cache = cache.contiguous()
    S, H, L, D = cache.shape
    out = torch.empty((slot.shape[0], H, L, D), device=cache.device, dtype=cache.dtype)
    n = H * L * D
    gather[(triton.cdiv(n, 1024), slot.shape[0])](cache, slot, out, cache.stride(0), n, BLOCK=1024)
    return out
