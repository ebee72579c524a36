"""Wrong: the causal mask is off by one, so each query also attends to the key right after it."""

import torch
import triton
import triton.language as tl

INPUTS = {"q": "float32|bfloat16[T, D]", "k": "float32|bfloat16[T, D]", "v": "float32|bfloat16[T, D]"}
DIMS = {"T": [1, 6, 45], "D": [8, 20]}
REQUIRES = ["D > 0"]


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q, k, v: [T, D]. Returns causal self-attention, [T, D], in q's dtype."""
    n_tokens, width = q.shape
    scores = q.float() @ k.float().T * width**-0.5
    future = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=q.device).triu(1)
    weights = torch.softmax(scores.masked_fill(future, -float("inf")), dim=-1)
    return (weights @ v.float()).to(q.dtype)


@triton.jit
def causal_attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    n_tokens,
    width,
    scale,
    q_stride_t,
    q_stride_d,
    k_stride_t,
    k_stride_d,
    v_stride_t,
    v_stride_d,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One program computes the output of one query; BLOCK_T >= n_tokens, BLOCK_D >= width."""
    query = tl.program_id(0).to(tl.int64)
    keys = tl.arange(0, BLOCK_T).to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    dim_mask = dims < width
    tile_mask = (keys < n_tokens)[:, None] & dim_mask[None, :]

    q = tl.load(q_ptr + query * q_stride_t + dims * q_stride_d, mask=dim_mask, other=0.0).to(tl.float32)
    k_offsets = keys[:, None] * k_stride_t + dims[None, :] * k_stride_d
    k = tl.load(k_ptr + k_offsets, mask=tile_mask, other=0.0).to(tl.float32)
    scores = tl.sum(q[None, :] * k, axis=1) * scale
    visible = (keys <= query + 1) & (keys < n_tokens)
    scores = tl.where(visible, scores, -float("inf"))

    weights = tl.exp(scores - tl.max(scores, axis=0))
    weights = weights / tl.sum(weights, axis=0)
    v_offsets = keys[:, None] * v_stride_t + dims[None, :] * v_stride_d
    v = tl.load(v_ptr + v_offsets, mask=tile_mask, other=0.0).to(tl.float32)
    out = tl.sum(weights[:, None] * v, axis=0)
    tl.store(out_ptr + query * width + dims, out, mask=dim_mask)


def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    n_tokens, width = q.shape
    out = torch.empty((n_tokens, width), dtype=q.dtype, device=q.device)
    if n_tokens == 0:
        return out
    strides = (*q.stride(), *k.stride(), *v.stride())
    BLOCK_T = triton.next_power_of_2(n_tokens)
    BLOCK_D = triton.next_power_of_2(width)
    causal_attention_kernel[(n_tokens,)](
        q, k, v, out, n_tokens, width, width**-0.5, *strides, BLOCK_T=BLOCK_T, BLOCK_D=BLOCK_D
    )
    return out
