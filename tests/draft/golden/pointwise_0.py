import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def out_elements_0_kernel(
    x_ptr,
    b_ptr,
    out_ptr,
    N,
    n_elements,
    BLOCK: tl.constexpr,
    INDEX: tl.constexpr,
):
    """Taken at any size."""
    i = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)
    i_mask = i < n_elements
    x = tl.load(x_ptr + i, mask=i_mask).to(tl.float32)
    n = i % N
    b = tl.load(b_ptr + n, mask=i_mask).to(tl.float32)
    total = x + b
    out = total * tl.sigmoid(total)
    tl.store(out_ptr + i, out, mask=i_mask)
