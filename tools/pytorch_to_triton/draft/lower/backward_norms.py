"""Gradients of normalizations: of the input, the weight and the bias, whichever are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import ONE, FloorDiv, Size
from pytorch_to_triton.draft.ir.values import Value, op
from pytorch_to_triton.draft.lower.backward import less, product
from pytorch_to_triton.draft.lower.norms import affine, reciprocal_root
from pytorch_to_triton.draft.lower.reductions import average, statistic
from pytorch_to_triton.draft.lower.row import Context, count, mapped, row
from pytorch_to_triton.draft.lower.tensor import Tensor, along_channels, reshaped

Gradients = tuple[Tensor, Tensor, Tensor]


def _of_input(ctx: Context, scaled: Tensor, x_hat: Tensor, rstd: Tensor, dims: Sequence[int]) -> Tensor:
    """What g, `scaled` by the weight, gives by its mean and that of g * x_hat."""
    mean = average(ctx, scaled, dims, keepdim=True, name="grad_mean")
    along = average(ctx, _times(ctx, scaled, x_hat), dims, keepdim=True, name="grad_along")
    return _by_means(ctx, scaled, x_hat, rstd, (mean, along))


def _by_means(
    ctx: Context, scaled: Tensor, x_hat: Tensor, rstd: Tensor, means: tuple[Tensor, Tensor]
) -> Tensor:
    """rstd * (g - mean(g) - x_hat * mean(g * x_hat)), where g is `scaled` by the weight."""

    def gradient(g: Value, x: Value, r: Value, m: Value, a: Value) -> Value:
        return product(r, less(less(g, m), product(x, a)))

    return mapped(ctx, gradient, scaled, x_hat, rstd, *means, dtype=scaled.dtype)


def _normalized(ctx: Context, x: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
    return mapped(ctx, lambda x, m, r: op("mul", less(x, m), r, name="x_hat"), x, mean, rstd, dtype=x.dtype)


def _times(ctx: Context, x: Tensor, factor: Tensor) -> Tensor:
    return mapped(ctx, product, x, factor, dtype=x.dtype)


def _in(x: Tensor, like: Tensor | None) -> Tensor:
    return x if like is None else replace(x, dtype=like.dtype)


@row(
    "aten.native_layer_norm_backward.default",
    arguments="grad_out input normalized_shape mean rstd weight bias output_mask",
)
def layer_norm_backward(
    ctx: Context,
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[Any],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
) -> Gradients:
    outer = len(input) - len(normalized_shape)
    x_hat = _normalized(ctx, input, mean, rstd)
    inner = range(outer, len(input))
    x_grad = _of_input(ctx, affine(ctx, grad_out, weight, None), x_hat, rstd, inner)
    weight_grad = ctx.reduce(SUM, _times(ctx, grad_out, x_hat), range(outer), dtype=input.dtype)
    bias_grad = ctx.reduce(SUM, grad_out, range(outer), dtype=input.dtype)
    return _in(x_grad, input), _in(weight_grad, weight), _in(bias_grad, bias)


@row(
    "aten.native_group_norm_backward.default",
    arguments="grad_out input mean rstd weight N C HxW group output_mask",
)
def group_norm_backward(
    ctx: Context,
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    group: int,
    output_mask: Sequence[bool],
) -> Gradients:
    batch, channels = input.shape[:2]
    whole = (batch, ONE * group, FloorDiv(channels, ONE * group), count(input, range(2, len(input))))
    grad, x = (reshaped(ctx.names, t, whole) for t in (grad_out, input))
    mean, rstd = (replace(t, dims=(*t.dims, (), ())) for t in (mean, rstd))
    by_group = None if weight is None else reshaped(ctx.names, weight, (*whole[1:3], ONE))
    x_hat = _normalized(ctx, x, mean, rstd)
    scaled = affine(ctx, grad, by_group, None)
    if not any(output_mask[1:]):
        x_grad = reshaped(ctx.names, _of_input(ctx, scaled, x_hat, rstd, (2, 3)), input.shape)
        return (_in(x_grad, input),) * 3  # Nothing reads the others.
    sums = [
        ctx.stored(name, statistic(ctx.reduce(SUM, t, (3,), keepdim=True, dtype=t.dtype)))
        for name, t in (("grad_sum", grad), ("grad_x_sum", _times(ctx, grad, x_hat)))
    ]
    n = count(x, (2, 3))
    mean, along = (
        _mean_of_groups(ctx, affine(ctx, t, by_group, None), n, name)
        for t, name in zip(sums, ("grad_mean", "grad_along"), strict=True)
    )
    x_grad = reshaped(ctx.names, _by_means(ctx, scaled, x_hat, rstd, (mean, along)), input.shape)
    bias_grad, weight_grad = (
        reshaped(ctx.names, ctx.reduce(SUM, t, (0,), dtype=t.dtype), (channels,)) for t in sums
    )
    return _in(x_grad, input), _in(weight_grad, weight), _in(bias_grad, weight)


def _mean_of_groups(ctx: Context, sums: Tensor, n: Size, name: str) -> Tensor:
    """From sums of channels that of each group by its `n` elements; it lies in memory for all of them."""
    total = ctx.reduce(SUM, sums, (2,), keepdim=True, dtype=sums.dtype)
    return ctx.stored(name, replace(total, value=op("div", total.value, extent(n), name=name)))


@row(
    "aten.native_batch_norm_backward.default",
    arguments="grad_out input weight running_mean running_var save_mean save_invstd train eps output_mask",
)
def batch_norm_backward(
    ctx: Context,
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
) -> Gradients:
    def by_channel(t: Tensor | None) -> Tensor:
        assert t is not None
        return along_channels(t, len(input))

    dims = [d for d in range(len(input)) if d != 1]
    mean = by_channel(save_mean if train else running_mean)
    rstd = by_channel(save_invstd) if train else reciprocal_root(ctx, by_channel(running_var), eps)
    x_hat = _normalized(ctx, input, mean, rstd)
    scaled = grad_out if weight is None else _times(ctx, grad_out, by_channel(weight))
    x_grad = _of_input(ctx, scaled, x_hat, rstd, dims) if train else _times(ctx, scaled, rstd)
    weight_grad = ctx.reduce(SUM, _times(ctx, grad_out, x_hat), dims, dtype=input.dtype)
    bias_grad = ctx.reduce(SUM, grad_out, dims, dtype=input.dtype)
    return _in(x_grad, input), _in(weight_grad, weight), _in(bias_grad, weight)
