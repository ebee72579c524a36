"""Dropout from a seed: out[i] = x[i] * keep[i] / (1 - p), keep[i] = (the i-th random number of seed) >= p.

x and out are [N], 0 <= p <= 1. One pass: x is read once, out written once. The mask is never stored: the
random numbers are Philox4x32-10 (Salmon, Moraes, Dror and Shaw, 2011), in which number i is computed from
seed and i alone, so the gradient, dx[i] = dout[i] * keep[i] / (1 - p), is the same function of dout. Philox
gives four numbers at a time: element i has number i % 4 of counter i // 4, whatever the grid. Of each number
24 bits are compared, as many as float32 has, so p = 0 keeps everything and p = 1 nothing. The product is
float32 and rounded once, to x's dtype. As in PyTorch, a dropped NaN or infinity becomes NaN.

Technique: random numbers computed anew from seed and offset instead of a stored mask, four for each counter.
Topics: coalescing, fusion and precision, backward.
"""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16|float16[N]", "p": 0.3, "seed": 20_260_611}
DIMS = {"N": [1, 6, 1000, 4096, 100_003]}

BLOCK_N = 4096
RANDOM_BITS = 24


def reference(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """x: [N]. Returns [N] in x's dtype."""
    index = torch.arange(x.shape[0], device=x.device)
    words = torch.stack(philox(seed, index // 4), dim=1)
    number = words[index, index % 4] >> (32 - RANDOM_BITS)
    keep = number >= round(p * 2**RANDOM_BITS)
    return x * (keep * keep_scale(p)).to(x.dtype)


def philox(seed: int, counter: torch.Tensor) -> list[torch.Tensor]:
    """counter: int64 [N]. Returns the four words of Philox4x32-10 for each, int64 [N] below 2**32."""
    low_32_bits = 0xFFFFFFFF
    words = [counter & low_32_bits, counter >> 32, torch.zeros_like(counter), torch.zeros_like(counter)]
    keys = [seed & low_32_bits, seed >> 32 & low_32_bits]
    for _ in range(10):
        # int64 products wrap around, but keep the lower 64 bits, which are all there are.
        first, third = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [
            (third >> 32 & low_32_bits) ^ words[1] ^ keys[0],
            third & low_32_bits,
            (first >> 32 & low_32_bits) ^ words[3] ^ keys[1],
            first & low_32_bits,
        ]
        keys = [keys[0] + 0x9E3779B9 & low_32_bits, keys[1] + 0xBB67AE85 & low_32_bits]
    return words


def keep_scale(p: float) -> float:
    """What a kept element is multiplied by; at p = 1 there is none."""
    return 1 / (1 - p) if p < 1 else 0.0


@triton.jit(do_not_specialize=["seed", "threshold"])
def dropout_kernel(x_ptr, out_ptr, n, seed, threshold, scale, x_stride, BLOCK_N: tl.constexpr):
    """One program drops out of BLOCK_N elements.

    x_ptr: [n], elements x_stride apart. out_ptr: [n], contiguous. threshold: p * 2**24.
    """
    block = tl.program_id(0).to(tl.int64)
    counters = block * (BLOCK_N // 4) + tl.arange(0, BLOCK_N // 4)
    first, second, third, fourth = tl.randint4x(seed, counters)
    # join's new dimension is the fastest: first, second, third, fourth of a counter become neighbours.
    words = tl.join(tl.join(first, third), tl.join(second, fourth)).reshape(BLOCK_N)
    keep = (words.to(tl.uint32) >> 8).to(tl.int32) >= threshold

    offsets = block * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * x_stride, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * tl.where(keep, scale, 0.0), mask=mask)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """x: [N], any stride. Returns [N], contiguous, in x's dtype."""
    n = x.shape[0]
    out = torch.empty(n, dtype=x.dtype, device=x.device)
    if n > 0:
        grid = (triton.cdiv(n, BLOCK_N),)
        threshold = round(p * 2**RANDOM_BITS)
        dropout_kernel[grid](x, out, n, seed, threshold, keep_scale(p), x.stride(0), BLOCK_N)
    return out


def save_for_backward(ctx, inputs, output):
    """Keeps no tensor: p and seed are all that the mask needs."""
    _, ctx.p, ctx.seed = inputs


def backward(ctx, dout):
    """The gradients of x, p and seed, as autograd asks for them; only x has one."""
    return torch.ops.reference_kernels.dropout(dout, ctx.p, ctx.seed), None, None


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("dropout(Tensor x, float p, int seed) -> Tensor")
library.impl("dropout", dropout, "CompositeExplicitAutograd")
DROPOUT = "reference_kernels::dropout"
torch.library.register_fake(DROPOUT, lambda x, p, seed: x.new_empty(x.shape), lib=library)
torch.library.register_autograd(DROPOUT, backward, setup_context=save_for_backward, lib=library)


def run(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """x: [N], any stride. Returns [N], contiguous, in x's dtype."""
    return torch.ops.reference_kernels.dropout(x, p, seed)
