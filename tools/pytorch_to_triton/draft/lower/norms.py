"""Normalizations: layer, RMS, group, instance and batch norm, and the gradients of those that have a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import ONE, ZERO, FloorDiv, Size
from pytorch_to_triton.draft.ir.values import Const, Value, op
from pytorch_to_triton.draft.lower.reductions import average, moments, statistic
from pytorch_to_triton.draft.lower.row import (
    Context,
    Operand,
    Refused,
    count,
    first_of,
    inside,
    mapped,
    row,
    where,
)
from pytorch_to_triton.draft.lower.tensor import Tensor, along_channels, reshaped
from pytorch_to_triton.graph.dtype_rules import FINFO

Statistics = tuple[Tensor, Tensor, Tensor]


def normalized(ctx: Context, x: Tensor, dims: Sequence[int], eps: Operand) -> Statistics:
    """x with mean 0 and variance 1 over dimensions; its mean and 1 / its deviation, with these kept."""
    centered, mean, var = moments(ctx, x, dims)
    rstd = ctx.stored("rstd", statistic(reciprocal_root(ctx, var, eps)))
    return ctx.pointwise("mul", centered, rstd, dtype=x.dtype), mean, rstd


def reciprocal_root(ctx: Context, var: Tensor, eps: Operand) -> Tensor:
    """1 / sqrt(var + eps)."""
    return mapped(ctx, lambda v, e: op("rsqrt", v + e, name="rstd"), var, eps, dtype=var.dtype)


def affine(ctx: Context, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """x times the weight plus the bias, where there are any."""
    given: list[tuple[str, Tensor | None]] = [("mul", weight), ("add", bias)]
    for fn, operand in given:
        if operand is not None:
            x = ctx.pointwise(fn, x, operand, dtype=x.dtype)
    return x


@row("aten.native_layer_norm.default")
def layer_norm(
    ctx: Context,
    input: Tensor,
    normalized_shape: Sequence[Any],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: Operand = 1e-5,
) -> Statistics:
    out, mean, rstd = normalized(ctx, input, _last(input, normalized_shape), eps)
    return affine(ctx, out, weight, bias), mean, rstd


row("aten.layer_norm.default", arguments="input normalized_shape weight bias eps cudnn_enable")(
    first_of(layer_norm)
)


def _last(x: Tensor, shape: Sequence[Any]) -> range:
    return range(len(x) - len(shape), len(x))


@row("aten.rms_norm.default")
def rms_norm(
    ctx: Context,
    input: Tensor,
    normalized_shape: Sequence[Any],
    weight: Tensor | None = None,
    eps: Operand | None = None,
) -> Tensor:
    squares = ctx.pointwise("square", input, dtype=input.dtype)
    mean = average(ctx, squares, _last(input, normalized_shape), keepdim=True, name="mean_square")
    step = FINFO["eps"]["float64" if input.dtype == "float64" else "float32"]  # Halves are computed in it.
    rstd = reciprocal_root(ctx, mean, step if eps is None else eps)
    out = ctx.pointwise("mul", input, rstd, dtype=input.dtype)
    return affine(ctx, out, weight, None)


@row("aten.native_group_norm.default", arguments="input weight bias N C HxW group eps")
def native_group_norm(
    ctx: Context, input: Tensor, weight: Tensor | None, bias: Tensor | None, group: int, eps: Operand
) -> Statistics:
    return _grouped(ctx, input, group, weight, bias, eps)


@row("aten.group_norm.default", arguments="input num_groups weight bias eps cudnn_enabled")
def group_norm(
    ctx: Context,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: Operand = 1e-5,
) -> Tensor:
    return _grouped(ctx, input, num_groups, weight, bias, eps)[0]


def _grouped(
    ctx: Context, x: Tensor, groups: int, weight: Tensor | None, bias: Tensor | None, eps: Operand
) -> Statistics:
    """The channels of a group are normalized together, with all that lies below them."""
    batch, channels, *space = x.shape
    each: Size = sizes.FloorDiv(channels, sizes.size(groups))
    if not sizes.equal(each * groups, channels):
        raise Refused(f"its channels are not known to fall into {groups} groups")
    split = reshaped(ctx.names, x, (batch, sizes.size(groups), each, *space))
    out, mean, rstd = normalized(replace(ctx, stored=inside), split, range(2, len(split)), eps)
    joined = replace(out, dims=(out.dims[0], out.dims[1] + out.dims[2], *out.dims[3:]))
    per_group = (replace(s, dims=s.dims[:2]) for s in (mean, rstd))
    return (_scaled(ctx, joined, weight, bias), *per_group)  # type: ignore[return-value]


@row(
    "aten.instance_norm.default",
    arguments="input weight bias running_mean running_var use_input_stats momentum eps cudnn_enabled",
)
def instance_norm(
    ctx: Context,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    use_input_stats: bool,
    eps: Operand,
) -> Tensor:
    if not use_input_stats or running_mean is not None:
        raise Refused("it keeps running statistics")
    out, _, _ = normalized(replace(ctx, stored=inside), input, range(2, len(input)), eps)
    return _scaled(ctx, out, weight, bias)


def _scaled(ctx: Context, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    scales = (None if p is None else along_channels(p, len(x)) for p in (weight, bias))
    return affine(ctx, x, *scales)


def _of_batch(ctx: Context, x: Tensor, eps: Operand) -> Statistics:
    """Normalized by its own statistics; the mean and 1 / the deviation of each channel."""
    out, mean, rstd = normalized(replace(ctx, stored=inside), x, _all_but_channels(x), eps)
    return out, *(statistic(replace(s, dims=(s.dims[1],))) for s in (mean, rstd))  # type: ignore[return-value]


def _all_but_channels(x: Tensor) -> tuple[int, ...]:
    return tuple(i for i in range(len(x)) if i != 1)


def _nothing(ctx: Context, x: Tensor) -> Tensor:
    """The statistics that are not there."""
    return statistic(Tensor(((ctx.axis("none", ZERO),),), Const(0.0), x.dtype))


@row(
    "aten._native_batch_norm_legit_no_training.default",
    arguments="input weight bias running_mean running_var momentum eps",
)
def no_training(
    ctx: Context,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    eps: Operand,
) -> Statistics:
    mean, var = (along_channels(t, len(input)) for t in (running_mean, running_var))
    centered = ctx.pointwise("sub", input, mean, dtype=input.dtype)
    out = _times(ctx, centered, reciprocal_root(ctx, var, eps))
    return _scaled(ctx, out, weight, bias), _nothing(ctx, input), _nothing(ctx, input)


@row("aten._native_batch_norm_legit.no_stats", arguments="input weight bias training momentum eps")
def no_stats(
    ctx: Context, input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: Operand
) -> Statistics:
    out, mean, rstd = _of_batch(ctx, input, eps)
    return _scaled(ctx, out, weight, bias), mean, rstd


@row("aten._native_batch_norm_legit_functional.default")
def functional(
    ctx: Context,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: Operand,
) -> tuple[Tensor, ...]:
    if not training:
        found = no_training(ctx, input, weight, bias, running_mean, running_var, eps)
        return (*found, running_mean, running_var)
    out, mean, rstd = _of_batch(ctx, input, eps)
    new_mean, new_var = _updated(ctx, input, running_mean, running_var, momentum)
    return _scaled(ctx, out, weight, bias), mean, rstd, new_mean, new_var


def _updated(
    ctx: Context, x: Tensor, running_mean: Tensor, running_var: Tensor, momentum: float
) -> tuple[Tensor, Tensor]:
    """The running statistics a step further, but of no elements; their variance is the unbiased one."""
    dims = _all_but_channels(x)
    _, mean, var = moments(replace(ctx, stored=inside), x, dims)
    n = count(x, dims)
    unbiased = var.value * extent(n) / extent(n - 1)

    def step(old: Tensor, new: Value) -> Tensor:
        fresh = Tensor((mean.dims[1],), new, old.dtype)
        moved = mapped(ctx, _moved, old, fresh, momentum, dtype=old.dtype)
        if n.is_Integer and n > 0:
            return moved
        # As whole numbers, sizes are taken to be positive: where there is an index, they are.
        some = op("to_float", extent(n)) > 0.0
        return replace(moved, value=where(some, moved.value, old.at(*moved.indices)))

    return step(running_mean, mean.value), step(running_var, unbiased)


def _moved(old: Value, new: Value, momentum: Value) -> Value:
    assert isinstance(momentum, Const)
    return old * (1.0 - momentum.value) + new * momentum


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
        return r * (g - m - x * a)

    return mapped(ctx, gradient, scaled, x_hat, rstd, *means, dtype=scaled.dtype)


def _normalized(ctx: Context, x: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
    return mapped(ctx, lambda x, m, r: op("mul", x - m, r, name="x_hat"), x, mean, rstd, dtype=x.dtype)


def _times(ctx: Context, x: Tensor, factor: Tensor) -> Tensor:
    return ctx.pointwise("mul", x, factor, dtype=x.dtype)


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

    dims = _all_but_channels(input)
    mean = by_channel(save_mean if train else running_mean)
    rstd = by_channel(save_invstd) if train else reciprocal_root(ctx, by_channel(running_var), eps)
    x_hat = _normalized(ctx, input, mean, rstd)
    scaled = grad_out if weight is None else _times(ctx, grad_out, by_channel(weight))
    x_grad = _of_input(ctx, scaled, x_hat, rstd, dims) if train else _times(ctx, scaled, rstd)
    weight_grad = ctx.reduce(SUM, _times(ctx, grad_out, x_hat), dims, dtype=input.dtype)
    bias_grad = ctx.reduce(SUM, grad_out, dims, dtype=input.dtype)
    return _in(x_grad, input), _in(weight_grad, weight), _in(bias_grad, weight)
