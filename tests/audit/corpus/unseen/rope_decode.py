"""Decode step of a transformer layer: rotate the new query and key, and append key and value to the cache.

Called once per layer and generated token. Rotary embedding in the "rotate half" (GPT-NeoX, Llama) form.
"""
import torch
import triton
import triton.language as tl


def build_rope_tables(max_positions, head_dim, base=10000.0, device=None):
    inv_freq = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64, device=device) / head_dim)
    angles = torch.arange(max_positions, dtype=torch.float64, device=device)[:, None] * inv_freq[None, :]
    return angles.cos().float(), angles.sin().float()


@triton.jit
def _rotate(lo, hi, cos, sin):
    return lo * cos - hi * sin, hi * cos + lo * sin


@triton.jit
def rope_append_kernel(
    q_ptr, k_ptr, v_ptr, cos_ptr, sin_ptr,
    q_out_ptr, k_cache_ptr, v_cache_ptr,
    n_q_heads, n_kv_heads,
    cache_stride_b, cache_stride_h, cache_stride_s,
    position: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK_HALF: tl.constexpr,
):
    """Program (b, h): query heads first, then key/value heads. q, k, v: [B, heads, 2 * HALF], contiguous."""
    b = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    d = tl.arange(0, BLOCK_HALF)
    mask = d < HALF
    cos = tl.load(cos_ptr + position * HALF + d, mask=mask, other=0.0)
    sin = tl.load(sin_ptr + position * HALF + d, mask=mask, other=0.0)

    if h < n_q_heads:
        row = (b * n_q_heads + h) * (2 * HALF)
        lo = tl.load(q_ptr + row + d, mask=mask, other=0.0).to(tl.float32)
        hi = tl.load(q_ptr + row + HALF + d, mask=mask, other=0.0).to(tl.float32)
        new_lo, new_hi = _rotate(lo, hi, cos, sin)
        tl.store(q_out_ptr + row + d, new_lo, mask=mask)
        tl.store(q_out_ptr + row + HALF + d, new_hi, mask=mask)
    else:
        kv_head = h - n_q_heads
        row = (b * n_kv_heads + kv_head) * (2 * HALF)
        dst = b * cache_stride_b + kv_head.to(tl.int64) * cache_stride_h
        dst += tl.full((), position, tl.int64) * cache_stride_s
        lo = tl.load(k_ptr + row + d, mask=mask, other=0.0).to(tl.float32)
        hi = tl.load(k_ptr + row + HALF + d, mask=mask, other=0.0).to(tl.float32)
        new_lo, new_hi = _rotate(lo, hi, cos, sin)
        tl.store(k_cache_ptr + dst + d, new_lo, mask=mask)
        tl.store(k_cache_ptr + dst + HALF + d, new_hi, mask=mask)
        v_lo = tl.load(v_ptr + row + d, mask=mask)
        v_hi = tl.load(v_ptr + row + HALF + d, mask=mask)
        tl.store(v_cache_ptr + dst + d, v_lo, mask=mask)
        tl.store(v_cache_ptr + dst + HALF + d, v_hi, mask=mask)


def rope_append(q, k, v, cos, sin, k_cache, v_cache, position):
    """q: [B, Hq, D], k and v: [B, Hkv, D]; caches: [B, Hkv, S, D], written at `position`. Returns rotated q."""
    B, n_q_heads, D = q.shape
    n_kv_heads = k.shape[1]
    if D % 2:
        raise ValueError("head dimension must be even")
    if cos.shape[1] != D // 2 or cos.shape != sin.shape or not (cos.is_contiguous() and sin.is_contiguous()):
        raise ValueError("cos and sin must be contiguous [positions, D / 2] tables")
    if not 0 <= position < min(k_cache.shape[2], cos.shape[0]):
        raise IndexError(f"position {position} does not fit in the cache or in the tables")
    if k_cache.stride() != v_cache.stride() or k_cache.stride(3) != 1:
        raise ValueError("the caches need the same strides, 1 in the last dimension")
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    q_out = torch.empty_like(q)
    if B == 0:
        return q_out
    rope_append_kernel[(B, n_q_heads + n_kv_heads)](
        q, k, v, cos, sin, q_out, k_cache, v_cache,
        n_q_heads, n_kv_heads,
        k_cache.stride(0), k_cache.stride(1), k_cache.stride(2),
        position=position,
        HALF=D // 2,
        BLOCK_HALF=triton.next_power_of_2(D // 2),
        num_warps=1,
    )
    return q_out
