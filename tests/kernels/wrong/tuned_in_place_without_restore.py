"""Wrong: an autotuned kernel updates its input in place, and does so at every run on trial."""

import torch
import triton
import triton.language as tl

INPUTS = {"state": "float32[M, N]", "grad": "float32[M, N]", "decay": 0.75}
DIMS = {"M": [1, 7, 33], "N": [1, 32, 90]}


def reference(state: torch.Tensor, grad: torch.Tensor, decay: float) -> torch.Tensor:
    """state, grad: [M, N]. Updates state in place and returns it."""
    return state.mul_(decay).add_(grad)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["n_elements"])
@triton.jit
def decay_kernel(
    state_ptr,
    grad_ptr,
    n_elements,
    n_cols,
    decay,
    state_row_stride,
    state_col_stride,
    grad_row_stride,
    grad_col_stride,
    BLOCK: tl.constexpr,
):
    """state_ptr, grad_ptr: [n_elements // n_cols, n_cols]."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n_elements
    row, col = index // n_cols, index % n_cols
    state_ptrs = state_ptr + row * state_row_stride + col * state_col_stride
    grad = tl.load(grad_ptr + row * grad_row_stride + col * grad_col_stride, mask=mask)
    tl.store(state_ptrs, tl.load(state_ptrs, mask=mask) * decay + grad, mask=mask)


def run(state: torch.Tensor, grad: torch.Tensor, decay: float) -> torch.Tensor:
    n_elements = state.numel()
    if n_elements > 0:
        decay_kernel[lambda meta: (triton.cdiv(n_elements, meta["BLOCK"]),)](
            state, grad, n_elements, state.shape[1], decay, *state.stride(), *grad.stride()
        )
    return state
