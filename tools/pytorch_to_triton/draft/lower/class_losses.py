"""Losses that look up a class: negative log likelihood, cross entropy, the margin to all other classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.values import Const, Value, op
from pytorch_to_triton.draft.lower.arithmetic import power
from pytorch_to_triton.draft.lower.formulas import compared, mapped, name_of, where
from pytorch_to_triton.draft.lower.losses import MEAN, NONE, reduced
from pytorch_to_triton.draft.lower.reductions import average
from pytorch_to_triton.draft.lower.row import Context, Operand, number, row
from pytorch_to_triton.draft.lower.softmaxes import less_partition, log_partition
from pytorch_to_triton.draft.lower.tensor import Tensor, position


@dataclass(frozen=True)
class Picked:
    """What is found for each target; both are 0 where it is ignored."""

    chosen: Tensor
    """The input at the target's class."""
    weight: Tensor
    """The weight of that class."""
    counts: Tensor
    """Whether the target is not ignored."""


def _picked(x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: Any) -> Picked:
    """Nothing is read for a target that is ignored."""
    at = _class_dim(x)
    counts = op("ne", target.value, number(ignore_index), name="counts")
    chosen = x.where([*target.indices[:at], target.value, *target.indices[at:]], counts, 0.0)
    share = where(counts, 1.0, 0.0) if weight is None else weight.where([target.value], counts, 0.0)
    parts = ((chosen, x.dtype), (share, x.dtype), (counts, "bool"))
    return Picked(*(Tensor(target.dims, value, dtype) for value, dtype in parts))


def _class_dim(x: Tensor) -> int:
    return 0 if len(x) == 1 else 1


def _reduced(ctx: Context, losses: Tensor, weights: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """The losses, their sum, or that divided by all weights; and these."""
    if reduction == NONE:
        return losses, Tensor((), Const(0.0), losses.dtype)
    total, weight = (ctx.reduce(SUM, x, range(len(x)), dtype=x.dtype) for x in (losses, weights))
    if reduction == MEAN:
        total = mapped(ctx, lambda t, w: op("div", t, w), total, weight, dtype=losses.dtype)
    return total, weight


def _likelihood_losses(ctx: Context, found: Picked, *, weighted: bool) -> Tensor:
    def loss(chosen: Value, weight: Value) -> Value:
        return op("neg", op("mul", chosen, weight) if weighted else chosen)

    return mapped(ctx, loss, found.chosen, found.weight, dtype=found.chosen.dtype)


@row("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss_forward(
    ctx: Context, input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: Any
) -> tuple[Tensor, Tensor]:
    found = _picked(input, target, weight, ignore_index)
    losses = _likelihood_losses(ctx, found, weighted=weight is not None)
    return _reduced(ctx, losses, found.weight, reduction)


@row("aten.nll_loss.default", "aten.nll_loss2d.default", "aten.nll_loss_nd.default")
def nll_loss(
    ctx: Context,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: Any = -100,
) -> Tensor:
    return nll_loss_forward(ctx, input, target, weight, reduction, ignore_index)[0]


@row("aten.cross_entropy_loss.default")
def cross_entropy_loss(
    ctx: Context,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: Any = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    at = _class_dim(input)
    partition = log_partition(ctx, input, at, name_of(input))
    log_p = mapped(ctx, less_partition, input, *partition)
    share = op("div", label_smoothing, extent(input.shape[at]))
    if target.kind == "float":
        smooth = mapped(ctx, lambda t: _mixed(t, share, label_smoothing), target)
        return reduced(ctx, _over_classes(ctx, log_p, smooth, weight), reduction)
    found = _picked(input, target, weight, ignore_index)
    per_target = (replace(p, dims=(*p.dims[:at], *p.dims[at + 1 :])) for p in partition)
    likelihood = mapped(ctx, less_partition, found.chosen, *per_target)
    found = replace(found, chosen=ctx.where(found.counts, likelihood, 0.0))
    losses = _likelihood_losses(ctx, found, weighted=weight is not None)
    if label_smoothing:
        spread = mapped(ctx, lambda v: op("mul", v, share), _over_classes(ctx, log_p, None, weight))
        likely = mapped(ctx, lambda v: op("mul", v, 1 - label_smoothing), losses)
        losses = mapped(ctx, lambda a, b: op("add", a, b), likely, ctx.where(found.counts, spread, 0.0))
    return _reduced(ctx, losses, found.weight, reduction)[0]


def _mixed(probability: Value, share: Value, smoothing: float) -> Value:
    """The probability with as much of a uniform one mixed in."""
    if not smoothing:
        return probability
    return op("add", op("mul", probability, 1 - smoothing), share)


def _over_classes(ctx: Context, log_p: Tensor, probability: Tensor | None, weight: Tensor | None) -> Tensor:
    """The sum of -log p over the classes, by their probabilities and weights where there are any."""
    at = _class_dim(log_p)
    below = ((),) * (len(log_p) - at - 1)
    terms = log_p
    for factor in (probability, None if weight is None else replace(weight, dims=(*weight.dims, *below))):
        if factor is not None:
            terms = mapped(ctx, lambda a, b: op("mul", a, b), terms, factor, dtype=log_p.dtype)
    total = ctx.reduce(SUM, terms, [at], dtype=log_p.dtype)
    return replace(total, value=op("neg", total.value))


@row("aten.multi_margin_loss.default")
def multi_margin_loss(
    ctx: Context,
    input: Tensor,
    target: Tensor,
    p: Any = 1,
    margin: Operand = 1,
    weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    """Of each class but the target's: how far it comes too near to that."""
    at = _class_dim(input)
    label, chosen = (
        Tensor((*target.dims[:at], ()), value, input.dtype)
        for value in (target.value, input.at(*target.indices[:at], target.value))
    )
    classes = Tensor((input.dims[at],), position(input.dims[at]), "int64")
    other = compared(lambda a, b: op("ne", a, b), classes, label)

    def formula(x: Value, right: Value, gap: Value) -> Value:
        short = power(op("relu", op("add", op("sub", gap, right), x)), p)
        return short if weight is None else op("mul", short, weight.at(target.value))

    short = mapped(ctx, formula, input, chosen, margin)
    losses = average(ctx, ctx.where(other, short, 0.0), [at], keepdim=False)
    return reduced(ctx, losses, reduction)
