"""Batch norm: by running statistics, and in training by the batch's own."""

from __future__ import annotations

from dataclasses import replace

from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.sizes import ZERO
from pytorch_to_triton.draft.ir.values import Const, Value, op
from pytorch_to_triton.draft.lower.activations import along_channels
from pytorch_to_triton.draft.lower.formulas import mapped
from pytorch_to_triton.draft.lower.norms import Statistics, affine, normalized, reciprocal_root
from pytorch_to_triton.draft.lower.row import Context, Operand, count, inside, row
from pytorch_to_triton.draft.lower.spread import moments, statistic
from pytorch_to_triton.draft.lower.tensor import Tensor


def _scaled(ctx: Context, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    scales = (None if p is None else along_channels(p, len(x)) for p in (weight, bias))
    return affine(ctx, x, *scales)


def _by_running(ctx: Context, x: Tensor, mean: Tensor, var: Tensor, eps: Operand) -> Tensor:
    rstd = reciprocal_root(ctx, along_channels(var, len(x)), eps)
    centered = mapped(ctx, lambda v, m: op("sub", v, m), x, along_channels(mean, len(x)), dtype=x.dtype)
    return mapped(ctx, lambda c, r: op("mul", c, r), centered, rstd, dtype=x.dtype)


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
    out = _by_running(ctx, input, running_mean, running_var, eps)
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
    """The running statistics a step further; their variance is the unbiased one."""
    dims = _all_but_channels(x)
    _, mean, var = moments(replace(ctx, stored=inside), x, dims)
    n = count(x, dims)
    unbiased = op("div", op("mul", var.value, extent(n)), extent(n - 1))

    def step(old: Tensor, new: Value) -> Tensor:
        fresh = Tensor((mean.dims[1],), new, old.dtype)
        return mapped(ctx, _moved, old, fresh, momentum, dtype=old.dtype)

    return step(running_mean, mean.value), step(running_var, unbiased)


def _moved(old: Value, new: Value, momentum: Value) -> Value:
    assert isinstance(momentum, Const)
    return op("add", op("mul", old, 1.0 - momentum.value), op("mul", new, momentum))
