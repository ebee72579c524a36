"""Gradients of losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.sizes import product as size_product
from pytorch_to_triton.draft.ir.values import Value, op
from pytorch_to_triton.draft.lower.backward import less, product
from pytorch_to_triton.draft.lower.formulas import mapped
from pytorch_to_triton.draft.lower.row import Context, row
from pytorch_to_triton.draft.lower.tensor import Tensor

MEAN = 1
"""PyTorch's number for a loss that is the mean of its elements; 0 stands for all of them, 2 for their sum."""


def _of_loss(ctx: Context, slope: Callable[..., Value], reduction: int, *operands: Tensor) -> Tensor:
    """The slope of the loss in each element, where a mean divides it by their number."""
    n = extent(size_product(ctx.shape))
    return mapped(ctx, lambda *v: op("div", slope(*v), n) if reduction == MEAN else slope(*v), *operands)


@row("aten.mse_loss_backward.default")
def mse_loss_backward(
    ctx: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int
) -> Tensor:
    return _of_loss(ctx, lambda g, x, t: product(2.0, less(x, t), g), reduction, grad_output, input, target)


@row("aten.smooth_l1_loss_backward.default")
def smooth_l1_loss_backward(
    ctx: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    def slope(g: Value, x: Value, t: Value) -> Value:
        error = op("sub", x, t, name="error")
        near = op("div", product(error, g), beta)
        above = op("where", op("ge", error, beta), g, near)
        return op("where", op("le", error, -beta), op("neg", g), above)

    return _of_loss(ctx, slope, reduction, grad_output, input, target)


@row("aten.huber_loss_backward.default")
def huber_loss_backward(
    ctx: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int, delta: float
) -> Tensor:
    def slope(g: Value, x: Value, t: Value) -> Value:
        error = op("sub", x, t, name="error")
        above = op("where", op("ge", error, delta), product(g, delta), product(error, g))
        return op("where", op("le", error, -delta), product(g, -delta), above)

    return _of_loss(ctx, slope, reduction, grad_output, input, target)


@row("aten.binary_cross_entropy_backward.default")
def binary_cross_entropy_backward(
    ctx: Context,
    grad_output: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    def slope(g: Value, x: Value, t: Value, *weights: Value) -> Value:
        spread = op("maximum", product(less(1.0, x), x), 1e-12)
        return product(op("div", product(g, less(x, t)), spread), *weights)

    weights = [] if weight is None else [weight]
    return _of_loss(ctx, slope, reduction, grad_output, input, target, *weights)


@row("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default")
def nll_loss_backward(
    ctx: Context,
    grad_output: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: Any,
    total_weight: Tensor,
) -> Tensor:
    at = 0 if len(input) == 1 else 1
    places = list(input.indices)
    label_class = places.pop(at)
    label = target.at(*places[len(places) - len(target) :])
    grad = grad_output.at(*places) if len(grad_output) and len(target) else grad_output.value
    share = op("neg", grad)
    if weight is not None:
        share = op("mul", share, weight.at(label_class))
    if reduction == MEAN:
        share = op("div", share, total_weight.value)
    hit = op("and", op("eq", label, label_class), op("ne", label, ignore_index))
    return ctx.tensor(input.dims, op("where", hit, share, 0.0))
