"""Wrong: each step of a recurrence reads what other threads stored in the step before, with no barrier."""

import torch
import triton
import triton.language as tl

INPUTS = {"x": "float32[T, N]"}
DIMS = {"T": [1, 5], "N": [16, 100]}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x: [T, N]. Returns the last state, [N]: each step halves it, moves it by one, and adds a row."""
    state = torch.zeros_like(x[0])
    for step in x:
        state = state.roll(1) * 0.5 + step
    return state


@triton.jit
def recurrence_kernel(x_ptr, state_ptr, n_steps, n, step_stride, stride, BLOCK: tl.constexpr):
    """state_ptr: [2, n], zeros: each step reads one and writes the other. BLOCK >= n."""
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    for step in tl.range(0, n_steps):
        left = tl.load(state_ptr + step % 2 * n + (cols + n - 1) % n, mask=mask)
        x = tl.load(x_ptr + step.to(tl.int64) * step_stride + cols.to(tl.int64) * stride, mask=mask)
        tl.store(state_ptr + (step + 1) % 2 * n + cols, left * 0.5 + x, mask=mask)


def run(x: torch.Tensor) -> torch.Tensor:
    n_steps, n = x.shape
    state = torch.zeros((2, n), dtype=x.dtype, device=x.device)
    if x.numel():
        recurrence_kernel[(1,)](x, state, n_steps, n, *x.stride(), BLOCK=triton.next_power_of_2(n))
    return state[n_steps % 2]
