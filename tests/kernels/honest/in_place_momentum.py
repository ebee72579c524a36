"""Honest: updates two of its inputs in place, as the reference does."""

import torch
import triton
import triton.language as tl

INPUTS = {
    "param": "float32[M, N]",
    "grad": "float32[M, N]",
    "velocity": "float32[M, N]",
    "lr": 0.1,
    "momentum": 0.9,
}
DIMS = {"M": [1, 7, 33], "N": [1, 32, 90]}


def reference(
    param: torch.Tensor, grad: torch.Tensor, velocity: torch.Tensor, lr: float, momentum: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """param, grad, velocity: [M, N]. Updates param and velocity in place and returns both."""
    velocity.mul_(momentum).add_(grad)
    param.sub_(velocity * lr)
    return param, velocity


@triton.jit
def momentum_kernel(
    param_ptr,
    grad_ptr,
    velocity_ptr,
    n_elements,
    n_cols,
    lr,
    momentum,
    param_stride_m,
    param_stride_n,
    grad_stride_m,
    grad_stride_n,
    velocity_stride_m,
    velocity_stride_n,
    BLOCK: tl.constexpr,
):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n_elements
    row = index // n_cols
    col = index % n_cols
    param_ptrs = param_ptr + row * param_stride_m + col * param_stride_n
    velocity_ptrs = velocity_ptr + row * velocity_stride_m + col * velocity_stride_n
    grad = tl.load(grad_ptr + row * grad_stride_m + col * grad_stride_n, mask=mask)
    velocity = tl.load(velocity_ptrs, mask=mask) * momentum + grad
    tl.store(velocity_ptrs, velocity, mask=mask)
    tl.store(param_ptrs, tl.load(param_ptrs, mask=mask) - velocity * lr, mask=mask)


def run(
    param: torch.Tensor, grad: torch.Tensor, velocity: torch.Tensor, lr: float, momentum: float
) -> tuple[torch.Tensor, torch.Tensor]:
    n_elements = param.numel()
    if n_elements > 0:
        strides = (*param.stride(), *grad.stride(), *velocity.stride())
        BLOCK = 256
        grid = (triton.cdiv(n_elements, BLOCK),)
        momentum_kernel[grid](
            param, grad, velocity, n_elements, param.shape[1], lr, momentum, *strides, BLOCK=BLOCK
        )
    return param, velocity
