"""References that do the same at every dtype: run in float64, each is its own truth.

Each gets x: [6, 8], y: [8, 6], w: [8] of one floating dtype and index: int64 [6], each below 6.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Reference = Callable[[Tensor, Tensor, Tensor, Tensor], Any]


def views_written_to(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    out = x.clone()
    out[:, 1:3] += w[1:3]
    out.view(2, 3, 8)[0].mul_(2)
    out.t()[0] = 1.0
    out[out > 1.5] = 0.25
    return out


def argument_written_to(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    x.mul_(0.5).add_(w)
    x[0].zero_()
    return x


def out_arguments(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    out = torch.empty_like(x)
    torch.add(x, w, alpha=3, out=out)
    return torch.mul(out, out, out=out)


def asks_values(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    if (x > 0).any() and bool(x.isfinite().all()):
        return x * w.sum().item() + float(x.max()) + sum(w.tolist())
    return y


def of_several_dtypes(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    mixed = x * index[:, None] + w.float() + (x > 0) + torch.arange(8)
    return torch.cat([mixed, x.double()], dim=0).to(x.dtype)


def several_results(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> dict[str, Any]:
    best, places = x.topk(3, dim=-1)
    ordered = x.sort(dim=0, descending=True)
    return {
        "best": best, "places": places, "ordered": ordered, "argmax": x.argmax(-1), "above": x > y.t(),
        "parts": x.split([2, 6], dim=1), "rounded": (x * 3).round(), "whole": (x * 3).to(torch.int32),
        "mean": torch.var_mean(x, dim=-1), "number": x.shape[0] * 2.5, "nothing": None,
    }  # fmt: skip


def indexes(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    gathered = x.gather(0, index[:, None].expand(6, 8)) + x[index] + x.index_select(0, index)
    added = torch.zeros_like(x).index_add_(0, index, gathered)
    reduced = torch.zeros_like(x).scatter_reduce_(0, index[:, None].expand(6, 8), x, "amax")
    return added + reduced + functional.embedding(index, x)


def norms(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> tuple[Tensor, ...]:
    return (
        functional.layer_norm(x, (8,), w, None, 1e-5),
        functional.rms_norm(x, (8,), w, 1e-5),
        functional.group_norm(x, 2, w),
        functional.batch_norm(x, None, None, w, training=True),
        functional.normalize(x),
        torch.linalg.vector_norm(x, dim=-1),
    )


def running_statistics(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> tuple[Tensor, ...]:
    mean, variance = torch.zeros(8, dtype=x.dtype), torch.ones(8, dtype=x.dtype)
    return functional.batch_norm(x, mean, variance, w, training=True), mean, variance


def attention(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    q = x.view(1, 2, 3, 8)
    return functional.scaled_dot_product_attention(q, q, q * w, is_causal=True)


def softmaxes(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> tuple[Tensor, ...]:
    return x.softmax(-1), torch.softmax(x, 0, dtype=x.dtype), x.log_softmax(-1), x.logsumexp(-1)


def factories(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    ramp = torch.linspace(0, 1, 8, dtype=x.dtype) + torch.arange(8, dtype=x.dtype)
    full = torch.full_like(x, 0.1) + x.new_full((8,), 0.2) + x.new_zeros(6, 8) + torch.ones(8, dtype=x.dtype)
    return x + ramp + full + torch.where(x > 0, 0.3, x) + torch.eye(6, 8, dtype=x.dtype)


def own_gradient(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        out = functional.silu(x * w)
        (gradient,) = torch.autograd.grad(out.sum(), x)
    return out.detach(), gradient


class Squared(torch.autograd.Function):
    """With a backward of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * gradients[0]


def own_function(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    squared: Tensor = Squared.apply(x)  # type: ignore[no-untyped-call]
    return squared + w


def mapped_over_rows(x: Tensor, y: Tensor, w: Tensor, index: Tensor) -> Tensor:
    return torch.vmap(lambda row: row.softmax(0) * w)(x)


MANY: list[Reference] = [
    views_written_to, argument_written_to, out_arguments, asks_values, of_several_dtypes, several_results,
    indexes, norms, running_statistics, attention, softmaxes,
    factories, own_gradient,
    own_function, mapped_over_rows,
]  # fmt: skip
