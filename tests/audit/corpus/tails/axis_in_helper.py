import torch
import triton
import triton.language as tl


@triton.jit
def tile_index(TILE: tl.constexpr):
    return tl.program_id(1) * TILE + tl.arange(0, TILE)


@triton.jit
def silu_kernel(src, dst, count, TILE: tl.constexpr):
    i = tile_index(TILE)
    ok = i < count
    v = tl.load(src + i, mask=ok, other=0.0).to(tl.float32)
    tl.store(dst + i, (v * tl.sigmoid(v)).to(dst.dtype.element_ty), mask=ok)


def silu(t):
    t = t.contiguous()
    result = torch.empty_like(t)

    def grid(meta):
        return (triton.cdiv(t.numel(), meta["TILE"]),)

    silu_kernel[grid](t, result, t.numel(), TILE=1024)
    return result
