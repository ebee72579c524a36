"""Lion optimiser (Chen et al., 2023) with one fused kernel per parameter."""
import torch
import triton
import triton.language as tl
from torch.optim import Optimizer


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 512}, num_warps=4),
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 1024}, num_warps=8),
        triton.Config({"BLOCK": 2048}, num_warps=8),
    ],
    key=["n_elements"],
)
@triton.jit
def lion_update_kernel(p_ptr, grad_ptr, exp_avg_ptr, lr, wd, beta1, beta2, n_elements, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_elements

    p = tl.load(p_ptr + offs, mask=mask).to(tl.float32)
    grad = tl.load(grad_ptr + offs, mask=mask).to(tl.float32)
    exp_avg = tl.load(exp_avg_ptr + offs, mask=mask)

    # decoupled weight decay
    p = p * (1.0 - lr * wd)

    # sign of the interpolated momentum
    update = beta1 * exp_avg + (1.0 - beta1) * grad
    sign = tl.where(update > 0, 1.0, tl.where(update < 0, -1.0, 0.0))
    p = p - lr * sign

    exp_avg = beta2 * exp_avg + (1.0 - beta2) * grad

    tl.store(p_ptr + offs, p, mask=mask)
    tl.store(exp_avg_ptr + offs, exp_avg, mask=mask)


def lion_update_(p, grad, exp_avg, lr, wd, beta1, beta2):
    """Updates p and exp_avg in place. All three are contiguous and of one shape; exp_avg is float32."""
    n_elements = p.numel()
    if n_elements == 0:
        return
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK"]),)
    lion_update_kernel[grid](p, grad, exp_avg, lr, wd, beta1, beta2, n_elements)


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if lr <= 0.0:
            raise ValueError(f"invalid learning rate: {lr}")
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise ValueError(f"invalid betas: {betas}")
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()

        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not p.is_contiguous():
                    raise RuntimeError("Lion needs contiguous parameters")
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p, dtype=torch.float32)
                lion_update_(
                    p, p.grad.contiguous(), state["exp_avg"], group["lr"], group["weight_decay"], beta1, beta2
                )
        return loss
