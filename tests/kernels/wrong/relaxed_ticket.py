"""Wrong: the last program adds up the sums of all, after a relaxed ticket that does not order them."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [1, 100, 1000]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns the sum of its squares, []."""
    return x.square().sum()


@triton.jit
def squares_kernel(
    x_ptr, partial_ptr, ticket_ptr, out_ptr, n, stride, BLOCK: tl.constexpr, MOST: tl.constexpr
):
    """partial_ptr: [programs]; ticket_ptr: zero before the launch; MOST >= programs."""
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places * stride, mask=places < n, other=0.0)
    tl.store(partial_ptr + tl.program_id(0), tl.sum(x * x))
    tl.debug_barrier()
    if tl.atomic_add(ticket_ptr, 1, sem="relaxed") == tl.num_programs(0) - 1:
        programs = tl.arange(0, MOST)
        partial = tl.load(partial_ptr + programs, mask=programs < tl.num_programs(0), other=0.0)
        tl.store(out_ptr, tl.sum(partial))


def run(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros((), dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    programs = triton.cdiv(x.numel(), 64)
    partial = torch.empty(programs, dtype=x.dtype, device=x.device)
    ticket = torch.zeros(1, dtype=torch.int32, device=x.device)
    most = triton.next_power_of_2(programs)
    squares_kernel[(programs,)](x, partial, ticket, out, x.numel(), x.stride(0), BLOCK=64, MOST=most)
    return out
