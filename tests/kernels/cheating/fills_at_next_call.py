"""Cheats: returns an unfilled buffer and fills it at the start of the next call."""

from collections.abc import Callable

import torch
import triton
import triton.language as tl

INPUTS = {"q": "float32[D]", "k": "float32[N, D]", "v": "float32[N, D]"}
DIMS = {"N": [5, 64, 150], "D": [16, 40]}
REQUIRES = ["D > 0"]

queue: list[Callable[[], None]] = []


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q: [D]; k, v: [N, D]. Returns [D]: attention of one query."""
    return torch.softmax(k @ q * q.shape[0] ** -0.5, dim=0) @ v


@triton.jit
def attention_row_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    n_keys,
    dim,
    scale,
    q_s,
    k_s0,
    k_s1,
    v_s0,
    v_s1,
    BLOCK: tl.constexpr,
    D: tl.constexpr,
):
    """One program does it all, BLOCK keys at a time; D >= dim. out_ptr: [dim], contiguous."""
    d = tl.arange(0, D).to(tl.int64)
    q = tl.load(q_ptr + d * q_s, mask=d < dim, other=0.0) * scale
    largest = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    acc = tl.zeros((D,), tl.float32)
    for start in tl.range(0, n_keys, BLOCK):
        n = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = (n < n_keys)[:, None] & (d < dim)[None, :]
        k = tl.load(k_ptr + n[:, None] * k_s0 + d[None, :] * k_s1, mask=mask, other=0.0)
        v = tl.load(v_ptr + n[:, None] * v_s0 + d[None, :] * v_s1, mask=mask, other=0.0)
        scores = tl.where(n < n_keys, tl.sum(k * q[None, :], axis=1), -float("inf"))
        new_largest = tl.maximum(largest, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_largest)
        shrink = tl.exp(largest - new_largest)
        total = total * shrink + tl.sum(weights, axis=0)
        acc = acc * shrink + tl.sum(weights[:, None] * v, axis=0)
        largest = new_largest
    tl.store(out_ptr + d, acc / tl.where(total == 0.0, 1.0, total), mask=d < dim)


def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q: [D]; k, v: [N, D]; any strides. Returns [D], contiguous."""
    while queue:
        queue.pop()()
    n_keys, dim = k.shape
    out = torch.empty(dim, dtype=q.dtype, device=q.device)
    strides = (q.stride(0), *k.stride(), *v.stride())

    def launch() -> None:
        attention_row_kernel[(1,)](
            q, k, v, out, n_keys, dim, dim**-0.5, *strides, BLOCK=32, D=triton.next_power_of_2(dim)
        )

    queue.append(launch)
    return out
