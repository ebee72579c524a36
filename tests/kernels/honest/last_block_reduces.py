"""Honest: programs take tickets by atomic_add, and the one with the last ticket adds up all partial sums."""

import torch
import triton
import triton.language as tl

INPUTS = {"grad": "float32|bfloat16[M, N]"}
DIMS = {"M": [1, 30, 200], "N": [1, 64, 300]}

MOST_PROGRAMS = 16


def reference(grad: torch.Tensor) -> torch.Tensor:
    """grad: [M, N]. Returns float32 []: its Euclidean norm."""
    return grad.float().square().sum().sqrt()


@triton.jit
def norm_kernel(
    grad_ptr,
    partial_ptr,
    ticket_ptr,
    out_ptr,
    n_rows,
    n_cols,
    row_stride,
    col_stride,
    BLOCK_N: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """Program p squares and adds rows p, p + n_programs, ...; BLOCK_P >= n_programs.

    partial_ptr: float32 [n_programs]; ticket_ptr: int32, zero before the launch; out_ptr: float32 [1].
    """
    program = tl.program_id(0)
    n_programs = tl.num_programs(0)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for row in tl.range(program, n_rows, n_programs):
        row_ptr = grad_ptr + tl.cast(row, tl.int64) * row_stride
        for start in tl.range(0, n_cols, BLOCK_N):
            cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
            grad = tl.load(row_ptr + cols * col_stride, mask=cols < n_cols, other=0.0).to(tl.float32)
            total += grad * grad
    tl.store(partial_ptr + program, tl.sum(total, axis=0))

    # The partial sum must have been stored before the ticket says so.
    tl.debug_barrier()
    ticket = tl.atomic_add(ticket_ptr, 1, sem="acq_rel")
    if ticket == n_programs - 1:
        places = tl.arange(0, BLOCK_P)
        partial = tl.load(partial_ptr + places, mask=places < n_programs, other=0.0, volatile=True)
        tl.store(out_ptr, tl.sqrt(tl.sum(partial, axis=0)))


def run(grad: torch.Tensor) -> torch.Tensor:
    """grad: [M, N], any strides. Returns float32 []."""
    n_rows, n_cols = grad.shape
    out = torch.zeros((), dtype=torch.float32, device=grad.device)
    if grad.numel() == 0:
        return out
    n_programs = min(n_rows, MOST_PROGRAMS)
    partial = torch.empty(n_programs, dtype=torch.float32, device=grad.device)
    ticket = torch.zeros(1, dtype=torch.int32, device=grad.device)
    norm_kernel[(n_programs,)](
        grad, partial, ticket, out, n_rows, n_cols, *grad.stride(), BLOCK_N=128, BLOCK_P=MOST_PROGRAMS
    )
    return out
