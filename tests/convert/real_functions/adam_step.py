"""One step of Adam with decoupled weight decay, out of place."""

import torch

INPUTS = {
    "param": "float32|bfloat16[N]",
    "grad": "float32|bfloat16[N]",
    "exp_avg": "float32[N]",
    "exp_avg_sq": "float32[N] in 0.0..2.0",
    "step": 3,
    "lr": 0.001,
}
DIMS = {"N": [1, 33, 1000]}


def adam_step(
    param: torch.Tensor,
    grad: torch.Tensor,
    exp_avg: torch.Tensor,
    exp_avg_sq: torch.Tensor,
    step: int,
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """All tensors: [N]; step counts from 1. Returns param and both moments as they are after the step."""
    beta1, beta2 = betas
    grad = grad.float()
    exp_avg = exp_avg.mul(beta1).add(grad, alpha=1 - beta1)
    exp_avg_sq = torch.addcmul(exp_avg_sq * beta2, grad, grad, value=1 - beta2)
    bias_correction1 = 1 - beta1**step
    bias_correction2 = 1 - beta2**step
    denom = (exp_avg_sq.sqrt() / bias_correction2**0.5).add(eps)
    updated = param.float() * (1 - lr * weight_decay)
    updated = torch.addcdiv(updated, exp_avg, denom, value=-lr / bias_correction1)
    return updated.to(param.dtype), exp_avg, exp_avg_sq
