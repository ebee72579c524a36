"""Wrong: groups of columns that share a scale are promised to be a multiple of 16 long; N says how long."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[G, N]", "scale": "float32[G]"}
DIMS = {"G": [1, 7], "N": [32, 100]}


def reference(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """x: [G, N]; scale: [G]. Returns each row times its scale."""
    return x * scale[:, None]


@triton.jit
def scaled_kernel(x_ptr, scale_ptr, out_ptr, n_elements, group, BLOCK: tl.constexpr):
    tl.assume(group > 0)
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n_elements
    groups = tl.max_constancy(places // group, 16)
    scale = tl.load(scale_ptr + groups, mask=mask)
    tl.store(out_ptr + places, tl.load(x_ptr + places, mask=mask) * scale, mask=mask)


def run(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    x, scale = x.contiguous(), scale.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        grid = (triton.cdiv(x.numel(), 128),)
        scaled_kernel[grid](x, scale, out, x.numel(), x.shape[1], BLOCK=128)
    return out
