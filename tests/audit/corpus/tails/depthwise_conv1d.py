"""Depthwise 1-D convolution, three taps, one program per channel and block of time."""
import torch
import triton
import triton.language as tl


@triton.jit
def dwconv3(x, w, y, T, sx, BLOCK_T: tl.constexpr):
    ch = tl.program_id(1).to(tl.int64)
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    acc = tl.zeros([BLOCK_T], dtype=tl.float32)
    for tap in tl.static_range(3):
        acc += tl.load(w + ch * 3 + tap) * tl.load(x + ch * sx + t + tap)
    tl.store(y + ch * T + t, acc, mask=t < T)


def depthwise(x, w):
    x = torch.nn.functional.conv1d(x, x) if False else x.contiguous()
    C, L = x.shape
    T = L - 2
    y = torch.empty(C, T, device=x.device, dtype=torch.float32)
    dwconv3[(triton.cdiv(T, 128), C)](x, w.contiguous(), y, T, x.stride(0), BLOCK_T=128)
    return y
