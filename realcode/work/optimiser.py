"""An optimiser's steps over a flat parameter."""

import torch


def adamw_step(parameter, gradient, first, second, step, lr, decay):
    """The parameter and both moments after a step. step: [1], the others: [N]."""
    first = torch.lerp(first, gradient, 0.1)
    second = 0.999 * second + 0.001 * gradient * gradient
    unbiased_first = first / (1 - 0.9**step)
    unbiased_second = second / (1 - 0.999**step)
    updated = parameter * (1 - lr * decay) - lr * unbiased_first / (unbiased_second.sqrt() + 1e-8)
    return updated, first, second


def lion_step(parameter, gradient, momentum, lr, decay):
    """The parameter and its momentum after a step. All: [N]."""
    direction = torch.sign(0.9 * momentum + 0.1 * gradient)
    return parameter * (1 - lr * decay) - lr * direction, 0.99 * momentum + 0.01 * gradient


def clipped_gradient(gradient, most):
    """The gradient with a norm of `most` at most, and the norm. gradient: [N]."""
    norm = gradient.float().norm()
    return gradient * (most / (norm + 1e-6)).clamp(max=1.0).to(gradient.dtype), norm


def averaged_weights(average, master, rate):
    """The moving average of weights, and the weights in bfloat16. average, master: [N]."""
    return average + (1 - rate) * (master - average), master.to(torch.bfloat16)


CALLS = {
    "adamw_step": {
        "INPUTS": {
            "parameter": "float32[N]",
            "gradient": "float32[N]",
            "first": "float32[N]",
            "second": "float32[N] in 0..1",
            "step": "float32[1] in 1..1000",
            "lr": 0.001,
            "decay": 0.1,
        },
        "DIMS": {"N": [1000, 16777216]},
    },
    "lion_step": {
        "INPUTS": {
            "parameter": "float32[N]",
            "gradient": "bfloat16[N]",
            "momentum": "bfloat16[N]",
            "lr": 0.0001,
            "decay": 0.1,
        },
        "DIMS": {"N": [1000, 16777216]},
    },
    "clipped_gradient": {
        "INPUTS": {"gradient": "bfloat16[N]", "most": 1.0},
        "DIMS": {"N": [1000, 33554432]},
    },
    "averaged_weights": {
        "INPUTS": {"average": "float32[N]", "master": "float32[N]", "rate": 0.999},
        "DIMS": {"N": [1000, 16777216]},
    },
}
