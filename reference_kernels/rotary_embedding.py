"""Rotary position embedding: out1 = x1 * cos - x2 * sin, out2 = x2 * cos + x1 * sin, for the halves of x.

x and out are [B, T, H, D], D even, cos and sin are [T, D/2]; x1 is x[..., :D/2] and x2 is x[..., D/2:]. The
pairs (i, i + D/2) of every head, as GPT-NeoX and Llama pair them, are rotated by the angle of the position;
Su et al., 2021, arXiv:2104.09864. One pass: x is read once, out written once, and cos and sin once for all
heads of a token. Everything is computed in float32 and rounded once, to x's dtype.

The gradient is the rotation by the negative angle: the same kernel with -sin. The tables are constants.

Technique: a tile of tokens, heads and pairs, over which the tables' values are broadcast.
Topics: tiles, masks, coalescing, backward.
"""

import torch
import triton
import triton.language as tl

INPUTS = {
    "x": "float32|bfloat16|float16[B, T, H, D]",
    "cos": "float32|bfloat16|float16[T, D//2] in -1..1",
    "sin": "float32|bfloat16|float16[T, D//2] in -1..1",
}
DIMS = {"B": [1, 3], "T": [1, 7, 100], "H": [1, 5, 32], "D": [2, 64, 96, 256]}
REQUIRES = ["D % 2 == 0"]

# Pairs that a program rotates at a time.
TILE = 1024


def reference(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x: [B, T, H, D]; cos, sin: [T, D/2], constants. Returns [B, T, H, D] in x's dtype."""
    cos, sin = cos.detach()[:, None, :], sin.detach()[:, None, :]
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


@triton.jit
def rotary_embedding_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    n_batches,
    n_times,
    n_heads,
    n_pairs,
    x_batch_stride,
    x_time_stride,
    x_head_stride,
    x_dim_stride,
    cos_time_stride,
    cos_pair_stride,
    sin_time_stride,
    sin_pair_stride,
    DIRECTION: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program rotates all heads of BLOCK_T tokens, back where DIRECTION is -1, not 1; BLOCK_D >= n_pairs.

    x_ptr: [n_batches, n_times, n_heads, 2 * n_pairs], cos_ptr, sin_ptr: [n_times, n_pairs], any strides.
    out_ptr: [n_batches, n_times, n_heads, 2 * n_pairs], contiguous.
    """
    tokens = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)[:, None, None]
    batches, times = tokens // n_times, tokens % n_times
    pairs = tl.arange(0, BLOCK_D).to(tl.int64)[None, None, :]
    token_mask = (batches < n_batches) & (pairs < n_pairs)
    cos = tl.load(cos_ptr + times * cos_time_stride + pairs * cos_pair_stride, mask=token_mask)
    sin = tl.load(sin_ptr + times * sin_time_stride + pairs * sin_pair_stride, mask=token_mask)
    cos, sin = cos.to(tl.float32), sin.to(tl.float32) * DIRECTION

    x_token_ptr = x_ptr + batches * x_batch_stride + times * x_time_stride
    out_token_ptr = out_ptr + tokens * n_heads * 2 * n_pairs
    for start in tl.range(0, n_heads, BLOCK_H):
        heads = start + tl.arange(0, BLOCK_H).to(tl.int64)[None, :, None]
        mask = token_mask & (heads < n_heads)
        x_first_ptr = x_token_ptr + heads * x_head_stride + pairs * x_dim_stride
        first = tl.load(x_first_ptr, mask=mask).to(tl.float32)
        second = tl.load(x_first_ptr + n_pairs * x_dim_stride, mask=mask).to(tl.float32)
        out_first_ptr = out_token_ptr + heads * 2 * n_pairs + pairs
        tl.store(out_first_ptr, first * cos - second * sin, mask=mask)
        tl.store(out_first_ptr + n_pairs, second * cos + first * sin, mask=mask)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, direction: int) -> torch.Tensor:
    """x: [B, T, H, D]; cos, sin: [T, D/2], any strides. Returns [B, T, H, D], contiguous, in x's dtype."""
    n_batches, n_times, n_heads, n_dims = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_pairs = n_dims // 2
    BLOCK_D = triton.next_power_of_2(n_pairs)
    BLOCK_H = min(triton.next_power_of_2(n_heads), max(1, TILE // BLOCK_D))
    BLOCK_T = max(1, TILE // (BLOCK_D * BLOCK_H))
    grid = (triton.cdiv(n_batches * n_times, BLOCK_T),)
    sizes = (n_batches, n_times, n_heads, n_pairs)
    strides = (*x.stride(), *cos.stride(), *sin.stride())
    rotary_embedding_kernel[grid](x, cos, sin, out, *sizes, *strides, direction, BLOCK_T, BLOCK_H, BLOCK_D)
    return out


def rotary_embedding(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x: [B, T, H, D]; cos, sin: [T, D/2], any strides. Returns [B, T, H, D], contiguous, in x's dtype."""
    return rotate(x, cos, sin, direction=1)


def rotary_embedding_backward(dout: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """dout: [B, T, H, D]; cos, sin: [T, D/2], any strides. Returns x's gradient, [B, T, H, D], contiguous."""
    return rotate(dout, cos, sin, direction=-1)


def save_for_backward(ctx, inputs, output):
    """Keeps the tables alone."""
    _, cos, sin = inputs
    ctx.save_for_backward(cos, sin)


@torch.autograd.function.once_differentiable
def backward(ctx, dout):
    """The gradients of x, cos and sin, as autograd asks for them; the tables have none."""
    return torch.ops.reference_kernels.rotary_embedding_backward(dout, *ctx.saved_tensors), None, None


library = torch.library.Library("reference_kernels", "FRAGMENT")
library.define("rotary_embedding(Tensor x, Tensor cos, Tensor sin) -> Tensor")
library.define("rotary_embedding_backward(Tensor dout, Tensor cos, Tensor sin) -> Tensor")
library.impl("rotary_embedding", rotary_embedding, "CompositeExplicitAutograd")
library.impl("rotary_embedding_backward", rotary_embedding_backward, "CompositeExplicitAutograd")
ROTARY_EMBEDDING = "reference_kernels::rotary_embedding"
ROTARY_EMBEDDING_BACKWARD = "reference_kernels::rotary_embedding_backward"
torch.library.register_fake(ROTARY_EMBEDDING, lambda x, cos, sin: x.new_empty(x.shape), lib=library)
torch.library.register_fake(
    ROTARY_EMBEDDING_BACKWARD, lambda dout, cos, sin: dout.new_empty(dout.shape), lib=library
)
torch.library.register_autograd(ROTARY_EMBEDDING, backward, setup_context=save_for_backward, lib=library)


def run(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x: [B, T, H, D]; cos, sin: [T, D/2], any strides. Returns [B, T, H, D], contiguous, in x's dtype."""
    return torch.ops.reference_kernels.rotary_embedding(x, cos, sin)
