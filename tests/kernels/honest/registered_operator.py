"""Honest: an operator of torch.library, which asks whether its tensor is on a GPU, and has a gradient."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 5, 28], "N": [1, 32, 99]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [M, N]. Returns 2 * x, transposed: [N, M]."""
    return 2 * x.T


@triton.jit
def double_kernel(x_ptr, out_ptr, n, scale, ON_GPU: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * scale, mask=mask)


def doubled(x: torch.Tensor) -> torch.Tensor:
    x = x.T.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        grid = (triton.cdiv(x.numel(), 256),)
        double_kernel[grid](x, out, x.numel(), 2.0, ON_GPU=x.is_cuda, BLOCK=256)
    return out


library = torch.library.Library("honest", "FRAGMENT")
library.define("doubled(Tensor x) -> Tensor")
library.impl("doubled", doubled, "CompositeExplicitAutograd")
torch.library.register_fake("honest::doubled", lambda x: x.new_empty(x.shape[::-1]), lib=library)
torch.library.register_autograd("honest::doubled", lambda ctx, g: torch.ops.honest.doubled(g), lib=library)


def run(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.honest.doubled(x)
