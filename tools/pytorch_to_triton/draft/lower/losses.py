"""Losses, none reduced or their mean or sum taken."""

from __future__ import annotations

from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.values import Value, op
from pytorch_to_triton.draft.lower.activations import log_of_sigmoid
from pytorch_to_triton.draft.lower.elementwise import x_log_y
from pytorch_to_triton.draft.lower.formulas import is_literal, mapped, scaled, where
from pytorch_to_triton.draft.lower.reductions import average
from pytorch_to_triton.draft.lower.row import Context, Operand, row
from pytorch_to_triton.draft.lower.tensor import Tensor

NONE, MEAN = 0, 1
"""PyTorch's numbers for how a loss is reduced; 2 is its sum."""


def reduced(ctx: Context, losses: Tensor, reduction: int) -> Tensor:
    """The losses, their mean or their sum."""
    dims = range(len(losses))
    if reduction == MEAN:
        return average(ctx, losses, dims, keepdim=False)
    return losses if reduction == NONE else ctx.reduce(SUM, losses, dims)


@row("aten.mse_loss.default")
def mse_loss(ctx: Context, input: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    return reduced(ctx, mapped(ctx, lambda x, t: op("square", op("sub", x, t)), input, target), reduction)


@row("aten.l1_loss.default")
def l1_loss(ctx: Context, input: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    return reduced(ctx, mapped(ctx, distance, input, target), reduction)


def distance(x: Value, target: Value) -> Value:
    """|x - target|."""
    return op("abs", op("sub", x, target), name="distance")


@row("aten.huber_loss.default")
def huber_loss(
    ctx: Context, input: Tensor, target: Tensor, reduction: int = MEAN, delta: Operand = 1.0
) -> Tensor:
    def formula(x: Value, t: Value, top: Value) -> Value:
        far = distance(x, t)
        beyond = scaled(op("sub", far, op("mul", top, 0.5)), top)
        return where(op("le", far, top), op("mul", op("square", far), 0.5), beyond)

    return reduced(ctx, mapped(ctx, formula, input, target, delta), reduction)


@row("aten.smooth_l1_loss.default")
def smooth_l1_loss(
    ctx: Context, input: Tensor, target: Tensor, reduction: int = MEAN, beta: Operand = 1.0
) -> Tensor:
    def formula(x: Value, t: Value, top: Value) -> Value:
        far = distance(x, t)
        if is_literal(top, 0):
            return far
        near = op("mul", op("square", far), 0.5)
        within = near if is_literal(top, 1) else op("div", near, top)
        return where(op("lt", far, top), within, op("sub", far, op("mul", top, 0.5)))

    return reduced(ctx, mapped(ctx, formula, input, target, beta), reduction)


@row("aten.soft_margin_loss.default")
def soft_margin_loss(ctx: Context, input: Tensor, target: Tensor, reduction: int = MEAN) -> Tensor:
    def formula(x: Value, t: Value) -> Value:
        return op("log1p", op("exp", op("mul", op("neg", t), x)))

    return reduced(ctx, mapped(ctx, formula, input, target), reduction)


@row("aten.margin_ranking_loss.default")
def margin_ranking_loss(
    ctx: Context,
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: Operand = 0.0,
    reduction: int = MEAN,
) -> Tensor:
    def formula(a: Value, b: Value, t: Value, gap: Value) -> Value:
        wrong = op("mul", op("neg", t), op("sub", a, b))
        return op("relu", wrong if is_literal(gap, 0) else op("add", wrong, gap))

    return reduced(ctx, mapped(ctx, formula, input1, input2, target, margin), reduction)


@row("aten.hinge_embedding_loss.default")
def hinge_embedding_loss(
    ctx: Context, input: Tensor, target: Tensor, margin: Operand = 1.0, reduction: int = MEAN
) -> Tensor:
    def formula(x: Value, t: Value, gap: Value) -> Value:
        apart = where(op("eq", t, 1.0), 0.0, op("relu", op("sub", gap, x)))
        return op("add", apart, where(op("eq", t, -1.0), 0.0, x))

    return reduced(ctx, mapped(ctx, formula, input, target, margin), reduction)


@row("aten.kl_div.default")
def kl_div(
    ctx: Context, input: Tensor, target: Tensor, reduction: int = MEAN, log_target: bool = False
) -> Tensor:
    def formula(x: Value, t: Value) -> Value:
        if log_target:
            return op("mul", op("exp", t), op("sub", t, x))
        return op("sub", x_log_y(t, t), op("mul", t, x))

    return reduced(ctx, mapped(ctx, formula, input, target), reduction)


@row("aten.binary_cross_entropy.default")
def binary_cross_entropy(
    ctx: Context, input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    def formula(p: Value, t: Value) -> Value:
        log_p, log_q = (op("maximum", log, -100.0) for log in (op("log", p), op("log1p", op("neg", p))))
        return op("sub", op("mul", op("sub", t, 1.0), log_q), op("mul", t, log_p))

    return reduced(ctx, _weighted(ctx, mapped(ctx, formula, input, target), weight), reduction)


@row("aten.binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    ctx: Context,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = MEAN,
) -> Tensor:
    def formula(x: Value, t: Value, *positive: Value) -> Value:
        missed = op("mul", op("sub", 1.0, t), x)
        log_p = log_of_sigmoid(x)
        for w in positive:
            log_p = op("mul", op("add", op("mul", op("sub", w, 1.0), t), 1.0), log_p)
        return op("sub", missed, log_p)

    positive = () if pos_weight is None else (pos_weight,)
    return reduced(ctx, _weighted(ctx, mapped(ctx, formula, input, target, *positive), weight), reduction)


def _weighted(ctx: Context, losses: Tensor, weight: Tensor | None) -> Tensor:
    return losses if weight is None else mapped(ctx, lambda x, w: op("mul", x, w), losses, weight)
