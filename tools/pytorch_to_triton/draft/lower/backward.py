"""Gradients of functions, losses, views and pools, which only backward graphs hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import pi, sqrt
from operator import and_
from typing import Any

from pytorch_to_triton.draft.ir.indices import extent, minus, plus, quotient, times
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import Size, product, size
from pytorch_to_triton.draft.ir.values import Axis, Const, Index, Reduce, Value, op
from pytorch_to_triton.draft.lower.joins import joined, with_diagonal, zeros
from pytorch_to_triton.draft.lower.row import (
    Context,
    Refused,
    cast,
    mapped,
    register_formulas,
    row,
    scaled,
    where,
)
from pytorch_to_triton.draft.lower.scatters import with_selected, with_slice
from pytorch_to_triton.draft.lower.tensor import Tensor, guarded, position
from pytorch_to_triton.draft.lower.views import cut


def _mish(grad_output: Value, input: Value) -> Value:
    tanh = op("tanh", op("softplus", input), name="tanh_softplus")
    return grad_output * (tanh + input * op("sigmoid", input) * (1.0 - op("square", tanh)))


def _shrunk(grad_output: Value, input: Value, lambd: Value) -> Value:
    return where(op("abs", input) <= lambd, 0.0, grad_output)


def _softplus(grad_output: Value, input: Value, beta: Value, threshold: Value) -> Value:
    steep = scaled(input, beta)
    return where(steep > threshold, grad_output, grad_output * op("sigmoid", steep))


register_formulas({
    "sigmoid_backward.default": lambda grad_output, output: grad_output * (1.0 - output) * output,
    "mish_backward.default": _mish,
    "hardtanh_backward.default": lambda grad_output, input, min_val, max_val: (
        where((input <= min_val) | (input >= max_val), 0.0, grad_output)
    ),
    "hardsigmoid_backward.default": lambda grad_output, input: (
        where((input > -3.0) & (input < 3.0), grad_output * (1 / 6), 0.0)
    ),
    "softshrink_backward.default": _shrunk,
    "hardshrink_backward.default": lambda grad_out, input, lambd: _shrunk(grad_out, input, lambd),
    "softplus_backward.default": _softplus,
    "native_dropout_backward.default": lambda grad_output, mask, scale: grad_output * mask * scale,
})  # fmt: skip


@row("aten.gelu_backward.default")
def gelu_backward(ctx: Context, grad_output: Tensor, input: Tensor, *, approximate: str = "none") -> Tensor:
    slope = _gelu_slope if approximate == "none" else _gelu_tanh_slope
    return mapped(ctx, lambda g, x: g * slope(x), grad_output, input)


def _gelu_slope(x: Value) -> Value:
    cdf = op("mul", 0.5, 1.0 + op("erf", sqrt(0.5) * x), name="cdf")
    pdf = op("mul", 1 / sqrt(2 * pi), op("exp", -0.5 * op("square", x)), name="pdf")
    return cdf + x * pdf


def _gelu_tanh_slope(x: Value) -> Value:
    beta, kappa = sqrt(2 / pi), 0.044715
    inner = beta * (x + kappa * op("cube", x))
    tanh = op("tanh", inner, name="tanh_inner")
    inner_slope = beta * (1.0 + 3 * kappa * op("square", x))
    right = 0.5 * x * (1.0 - op("square", tanh)) * inner_slope
    return 0.5 * (1.0 + tanh) + right


@row("aten.leaky_relu_backward.default", arguments="grad_output input negative_slope self_is_result")
def leaky_relu_backward(ctx: Context, grad_output: Tensor, input: Tensor, negative_slope: Any) -> Tensor:
    return mapped(ctx, lambda g, x: where(x > 0.0, g, g * float(negative_slope)), grad_output, input)


@row("aten.log_sigmoid_backward.default", arguments="grad_output input buffer")
def log_sigmoid_backward(ctx: Context, grad_output: Tensor, input: Tensor) -> Tensor:
    return mapped(ctx, lambda g, x: g * op("sigmoid", -x), grad_output, input)


@row("aten.glu_backward.default")
def glu_backward(ctx: Context, grad_output: Tensor, input: Tensor, dim: int) -> Tensor:
    at = dim % len(input)
    half = grad_output.shape[at]
    a, b = (cut(ctx, input, at, start, half) for start in (0 * half, half))

    def of_gate(g: Value, a: Value, b: Value) -> Value:
        gate = op("sigmoid", b, name="gate")
        return g * a * gate * (1.0 - gate)

    left = mapped(ctx, lambda g, b: g * op("sigmoid", b), grad_output, b)
    return joined(ctx, [left, mapped(ctx, of_gate, grad_output, a, b)], at)


@row("aten._softmax_backward_data.default", arguments="grad_output output dim input_dtype")
def softmax_backward(ctx: Context, grad_output: Tensor, output: Tensor, dim: int) -> Tensor:
    weighted = ctx.pointwise("mul", grad_output, output)
    total = ctx.reduce(SUM, weighted, [dim], keepdim=True, name="total")
    return cast(mapped(ctx, lambda g, y, t: y * (g - t), grad_output, output, total), ctx.dtype)


@row("aten._log_softmax_backward_data.default", arguments="grad_output output dim input_dtype")
def log_softmax_backward(ctx: Context, grad_output: Tensor, output: Tensor, dim: int) -> Tensor:
    total = ctx.reduce(SUM, grad_output, [dim], keepdim=True, name="total")
    grad = mapped(ctx, lambda g, y, t: g - op("exp", y) * t, grad_output, output, total)
    return cast(grad, ctx.dtype)


MEAN = 1
"""PyTorch's number for a loss that is the mean of its elements; 0 stands for all of them, 2 for their sum."""


def _of_loss(ctx: Context, slope: Callable[..., Value], reduction: int, *operands: Tensor) -> Tensor:
    """The slope of the loss in each element, where a mean divides it by their number."""
    n = extent(product(ctx.shape))
    return mapped(ctx, lambda *v: slope(*v) / n if reduction == MEAN else slope(*v), *operands)


@row("aten.mse_loss_backward.default")
def mse_loss_backward(
    ctx: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int
) -> Tensor:
    return _of_loss(ctx, lambda g, x, t: 2.0 * (x - t) * g, reduction, grad_output, input, target)


@row("aten.smooth_l1_loss_backward.default")
def smooth_l1_loss_backward(
    ctx: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    def slope(g: Value, x: Value, t: Value) -> Value:
        error = op("sub", x, t, name="error")
        near = error * g / beta
        above = where(error >= beta, g, near)
        return where(error <= -beta, -g, above)

    return _of_loss(ctx, slope, reduction, grad_output, input, target)


@row("aten.huber_loss_backward.default")
def huber_loss_backward(
    ctx: Context, grad_output: Tensor, input: Tensor, target: Tensor, reduction: int, delta: float
) -> Tensor:
    def slope(g: Value, x: Value, t: Value) -> Value:
        error = op("sub", x, t, name="error")
        above = where(error >= delta, g * delta, error * g)
        return where(error <= -delta, g * -delta, above)

    return _of_loss(ctx, slope, reduction, grad_output, input, target)


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
    share = -grad
    if weight is not None:
        share = share * weight.at(label_class)
    if reduction == MEAN:
        share = share / total_weight.value
    hit = op("eq", label, label_class) & op("ne", label, ignore_index)
    return ctx.tensor(input.dims, where(hit, share, 0.0))


@row("aten.slice_backward.default", arguments="grad_output input_sizes dim start end step")
def slice_backward(ctx: Context, grad_output: Tensor, dim: int, start: Any, step: int) -> Tensor:
    return with_slice(ctx.names, zeros(ctx, grad_output), grad_output, dim % len(ctx.shape), start, step)


@row("aten.select_backward.default", arguments="grad_output input_sizes dim index")
def select_backward(ctx: Context, grad_output: Tensor, dim: int, index: Any) -> Tensor:
    return with_selected(zeros(ctx, grad_output), grad_output, dim % len(ctx.shape), index)


@row("aten.diagonal_backward.default", arguments="grad_output input_sizes offset dim1 dim2")
def diagonal_backward(ctx: Context, grad_output: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    return with_diagonal(zeros(ctx, grad_output), grad_output, offset, dim1, dim2)


@row(
    "aten.avg_pool2d_backward.default",
    arguments="grad_output input kernel_size stride padding ceil_mode count_include_pad divisor_override",
)
def avg_pool2d_backward(
    ctx: Context,
    grad_output: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    if ceil_mode:
        raise Refused("its windows may reach beyond the padding")
    kernel, steps, pads = ((n[0], n[-1]) for n in (kernel_size, stride or kernel_size, padding))
    if divisor_override is None and not count_include_pad and any(pads):
        raise Refused("its windows count unlike many elements")
    dims = ctx.names.dims(ctx.shape)
    index = [position(d) for d in dims]
    windows = [
        _windows(ctx, index[at], grad_output.shape[at], sizes)
        for at, sizes in zip((-2, -1), zip(kernel, steps, pads, strict=True), strict=True)
    ]
    axes = tuple(a for _, _, several in windows for a in several)
    inside = reduce(and_, (covers for _, covers, _ in windows))
    grad = guarded(grad_output.at(*index[:-2], *(at for at, _, _ in windows)), inside)
    taken = where(inside, grad, 0.0)
    total = Reduce(SUM, (taken,), axes) if axes else taken
    return ctx.tensor(dims, total / float(divisor_override or kernel[0] * kernel[1]))


def _windows(
    ctx: Context, index: Value, count: Size, sizes: tuple[int, int, int]
) -> tuple[Value, Value, tuple[Axis, ...]]:
    """Windows that may cover an index: which, whether it does, over how many. Sizes: kernel, stride, pad."""
    kernel, stride, padding = sizes
    padded = plus(index, Const(padding))
    last = quotient(padded, size(stride))
    most = -(-kernel // stride)
    axes = ctx.dim("w", size(most))
    window = minus(last, Index(axes[0])) if axes else last
    reach = minus(padded, times(window, size(stride))) < kernel
    within = (window >= 0) & (window < extent(count))
    return window, within & reach, axes
