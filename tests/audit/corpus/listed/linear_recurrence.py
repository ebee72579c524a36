"""First-order linear recurrence along rows: h[m, t] = a[m, t] * h[m, t - 1] + x[m, t], with h[m, -1] = 0."""

import torch
import triton
import triton.language as tl

INPUTS = {"a": "float32|bfloat16[M, L]", "x": "float32|bfloat16[M, L]"}
DIMS = {"M": [1, 16, 300], "L": [1, 100, 1000]}

MAX_BLOCK = 1024


def reference(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """a, x: [M, L]. Returns [M, L] in x's dtype."""
    h = torch.zeros(x.shape[0], dtype=torch.float32, device=x.device)
    steps = []
    for t in range(x.shape[1]):
        h = a[:, t].float() * h + x[:, t].float()
        steps.append(h)
    return torch.stack(steps, dim=1).to(x.dtype)


@triton.jit
def combine(a_left, h_left, a_right, h_right):
    return a_left * a_right, h_left * a_right + h_right


@triton.jit
def recurrence_kernel(a_ptr, x_ptr, out_ptr, length, row_stride, BLOCK: tl.constexpr):
    """Scans one row, BLOCK steps at a time, with the last state of a block carried into the next."""
    row = tl.program_id(0).to(tl.int64)
    a_row = a_ptr + row * row_stride
    x_row = x_ptr + row * row_stride
    out_row = out_ptr + row * row_stride
    lanes = tl.arange(0, BLOCK)

    carry = tl.zeros((1,), tl.float32)
    for start in tl.range(0, length, BLOCK):
        t = start + lanes
        mask = t < length
        a = tl.load(a_row + t, mask=mask, other=1.0).to(tl.float32)
        x = tl.load(x_row + t, mask=mask, other=0.0).to(tl.float32)
        decay, h = tl.associative_scan((a, x), 0, combine)
        h += decay * carry
        tl.store(out_row + t, h, mask=mask)
        carry = tl.sum(tl.where(lanes == BLOCK - 1, h, 0.0), axis=0, keep_dims=True)


def run(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """a, x: [M, L]. Returns [M, L], contiguous, in x's dtype."""
    n_rows, length = x.shape
    a, x = a.contiguous(), x.contiguous()
    out = torch.empty_like(x)
    block = min(MAX_BLOCK, triton.next_power_of_2(length))
    for i in range(n_rows):
        recurrence_kernel[(1,)](a[i], x[i], out[i], length, x.stride(0), BLOCK=block, num_warps=4)
    return out
