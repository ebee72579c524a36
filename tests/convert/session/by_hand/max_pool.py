"""A max pooling over windows of two by two, and its kernel as somebody would write it by hand."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[B, C, H, W]"}
DIMS = {"B": [1, 2], "C": [3], "H": [2, 9], "W": [2, 33]}
BUG = ("h * 2 + dh", "h + dh")


def target(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.max_pool2d(x, 2)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 256}, num_warps=4)],
    key=["n_elements"],
)
@triton.jit
def max_pool_kernel(x_ptr, out_ptr, H, W, n_elements, BLOCK: tl.constexpr):
    """Take the largest of each window. x_ptr: [B * C, H, W]; out_ptr: [B * C, H // 2, W // 2]."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n_elements
    w = i % (W // 2)
    h = i // (W // 2) % (H // 2)
    plane = i // ((W // 2) * (H // 2))
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    for dh in tl.static_range(2):
        for dw in tl.static_range(2):
            x = tl.load(x_ptr + (plane * H + h * 2 + dh) * W + w * 2 + dw, mask=mask)
            largest = tl.maximum(largest, x, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + i, largest, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    B, C, H, W = x.shape
    out = torch.empty((B, C, H // 2, W // 2), device=x.device, dtype=x.dtype)
    if n_elements := out.numel():
        max_pool_kernel[lambda meta: (triton.cdiv(n_elements, meta["BLOCK"]),)](x, out, H, W, n_elements)
    return out
