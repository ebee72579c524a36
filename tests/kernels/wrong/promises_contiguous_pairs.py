"""Wrong: the first elements of pairs, two apart, are promised to be contiguous."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N, 2]"}
DIMS = {"N": [16, 100, 300]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N, 2]. Returns the product of each pair, [N]."""
    return x[:, 0] * x[:, 1]


@triton.jit
def product_kernel(x_ptr, out_ptr, n_pairs, BLOCK: tl.constexpr):
    pairs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    firsts = tl.max_contiguous(2 * pairs, BLOCK)
    first = tl.load(x_ptr + firsts, mask=pairs < n_pairs)
    second = tl.load(x_ptr + firsts + 1, mask=pairs < n_pairs)
    tl.store(out_ptr + pairs, first * second, mask=pairs < n_pairs)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    if x.numel():
        product_kernel[(triton.cdiv(x.shape[0], 64),)](x, out, x.shape[0], BLOCK=64)
    return out
