"""Optimisers' steps over flat parameters and over a matrix."""

import torch


def nesterov_step(parameter, gradient, velocity, lr, decay):
    """The parameter and its velocity. All: [N]."""
    gradient = gradient + decay * parameter
    velocity = 0.9 * velocity + gradient
    return parameter - lr * (gradient + 0.9 * velocity), velocity


def adafactor_step(parameter, gradient, row_moment, column_moment, lr):
    """A step by factored second moments. parameter, gradient: [M, N], moments: [M] and [N]."""
    square = gradient.square() + 1e-30
    row_moment = 0.99 * row_moment + 0.01 * square.mean(dim=1)
    column_moment = 0.99 * column_moment + 0.01 * square.mean(dim=0)
    moment = row_moment[:, None] * column_moment[None] / row_moment.mean()
    return parameter - lr * gradient * torch.rsqrt(moment), row_moment, column_moment


def lamb_step(parameter, gradient, first, second, lr, decay):
    """A step scaled by the ratio of both norms, and the moments. All: [N]."""
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient.square()
    update = first / (second.sqrt() + 1e-6) + decay * parameter
    ratio = parameter.norm() / update.norm().clamp(min=1e-6)
    return parameter - lr * ratio * update, first, second


def unscaled_gradient(gradient, scale):
    """The gradient without its scale, and whether anything in it is not finite. gradient: [N], scale: [1]."""
    unscaled = gradient.float() / scale
    return unscaled, (~torch.isfinite(unscaled)).any()


def adam_step_8_bit(parameter, gradient, codes, scales, second, lr):
    """The first moment lies in int8 with a scale for each 256. parameter, gradient, second: [N], scales: [N // 256]."""
    first = (codes.view(-1, 256).float() * scales[:, None]).flatten()
    first = 0.9 * first + 0.1 * gradient.float()
    second = 0.999 * second + 0.001 * gradient.float().square()
    updated = parameter - lr * first / (second.sqrt() + 1e-8)
    blocks = first.view(-1, 256)
    scales = blocks.abs().amax(dim=1).clamp(min=1e-12) / 127
    return updated, torch.round(blocks / scales[:, None]).to(torch.int8).flatten(), scales, second


CALLS = {
    "nesterov_step": {
        "INPUTS": {
            "parameter": "float32[N]",
            "gradient": "float32[N]",
            "velocity": "float32[N]",
            "lr": 0.1,
            "decay": 0.0001,
        },
        "DIMS": {"N": [1000, 16777216]},
    },
    "adafactor_step": {
        "INPUTS": {
            "parameter": "float32[M, N]",
            "gradient": "float32[M, N]",
            "row_moment": "float32[M] in 0.1..1",
            "column_moment": "float32[N] in 0.1..1",
            "lr": 0.01,
        },
        "DIMS": {"M": [33, 4096], "N": [40, 4096]},
    },
    "lamb_step": {
        "INPUTS": {
            "parameter": "float32[N]",
            "gradient": "float32[N]",
            "first": "float32[N]",
            "second": "float32[N] in 0..1",
            "lr": 0.001,
            "decay": 0.01,
        },
        "DIMS": {"N": [1000, 16777216]},
    },
    "unscaled_gradient": {
        "INPUTS": {"gradient": "float16[N]", "scale": "float32[1] in 1..1024"},
        "DIMS": {"N": [1000, 33554432]},
    },
    "adam_step_8_bit": {
        "INPUTS": {
            "parameter": "float32[256*G]",
            "gradient": "bfloat16[256*G]",
            "codes": "int8[256*G] in -127..127",
            "scales": "float32[G] in 0.001..0.1",
            "second": "float32[256*G] in 0..1",
            "lr": 0.001,
        },
        "DIMS": {"G": [5, 65536]},
    },
}
