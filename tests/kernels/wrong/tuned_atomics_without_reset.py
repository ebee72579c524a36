"""Wrong: an autotuned kernel adds to its output, and does so at every run on trial."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32|bfloat16[N]", "y": "float32|bfloat16[N]"}
DIMS = {"N": [1, 150, 1000]}


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """x, y: [N]. Returns their scalar product, float32 [1]."""
    return (x.float() * y.float()).sum(dim=0, keepdim=True)


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def dot_kernel(x_ptr, y_ptr, total_ptr, n, x_stride, y_stride, BLOCK: tl.constexpr):
    """Each program adds BLOCK products to total_ptr: float32 [1]."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index * x_stride, mask=index < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + index * y_stride, mask=index < n, other=0.0).to(tl.float32)
    tl.atomic_add(total_ptr, tl.sum(x * y, axis=0), sem="relaxed")


def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    n = x.shape[0]
    total = torch.zeros(1, dtype=torch.float32, device=x.device)
    if n > 0:
        dot_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, total, n, x.stride(0), y.stride(0))
    return total
