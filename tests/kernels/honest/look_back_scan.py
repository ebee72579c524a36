"""Honest: each program of a cumulative sum waits for the one before it, which releases its total."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[N]"}
DIMS = {"N": [1, 100, 300]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [N]. Returns its cumulative sum."""
    return x.cumsum(dim=0)


@triton.jit
def scan_kernel(x_ptr, out_ptr, total_ptr, ready_ptr, n, stride, BLOCK: tl.constexpr):
    """total_ptr: [programs + 1], its first 0; ready_ptr: [programs + 1], zeros after its first, 1.

    Programs are numbered as they start, by the flag after all others: none waits for one that may never run.
    """
    program = tl.atomic_add(ready_ptr + tl.num_programs(0) + 1, 1, sem="relaxed")
    places = program.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places * stride, mask=places < n, other=0.0)
    while tl.atomic_add(ready_ptr + program, 0, sem="acquire") == 0:
        pass
    before = tl.load(total_ptr + program, volatile=True)
    tl.store(total_ptr + program + 1, before + tl.sum(x))
    tl.atomic_xchg(ready_ptr + program + 1, 1, sem="release")
    tl.store(out_ptr + places, before + tl.cumsum(x), mask=places < n)


def run(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    programs = triton.cdiv(x.numel(), 64)
    total = torch.zeros(programs + 1, dtype=x.dtype, device=x.device)
    ready = torch.zeros(programs + 2, dtype=torch.int32, device=x.device)
    ready[:1].fill_(1)
    scan_kernel[(programs,)](x, out, total, ready, x.numel(), x.stride(0), BLOCK=64)
    return out
