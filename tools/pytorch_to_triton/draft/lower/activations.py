"""Activations: what stands between the layers of a network."""

from __future__ import annotations

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.values import Const, Value, kind_of, op
from pytorch_to_triton.draft.lower.comparisons import between
from pytorch_to_triton.draft.lower.row import Context, Operand, is_literal, mapped, row, scaled, where
from pytorch_to_triton.draft.lower.tensor import Tensor
from pytorch_to_triton.draft.lower.views import cut


@row("aten.relu.default")
def relu(ctx: Context, input: Tensor) -> Tensor:
    return mapped(ctx, lambda x: op("relu", x) if kind_of(x) == "float" else op("larger", x, 0), input)


@row("aten.relu6.default")
def relu6(ctx: Context, input: Tensor) -> Tensor:
    return mapped(ctx, between, input, 0, 6)


@row("aten.hardtanh.default")
def hardtanh(ctx: Context, input: Tensor, min_val: Operand = -1, max_val: Operand = 1) -> Tensor:
    return mapped(ctx, between, input, min_val, max_val)


@row("aten.gelu.default")
def gelu(ctx: Context, input: Tensor, approximate: str = "none") -> Tensor:
    return mapped(ctx, lambda x: op("gelu_tanh" if approximate == "tanh" else "gelu", x), input)


@row("aten.softplus.default")
def softplus(ctx: Context, input: Tensor, beta: Operand = 1, threshold: Operand = 20) -> Tensor:
    def formula(x: Value, rate: Value, top: Value) -> Value:
        if is_literal(rate, 1) and is_literal(top, 20):
            return op("softplus", x)
        steep = scaled(x, rate)
        curve = op("log1p", op("exp", steep))
        return where(op("gt", steep, top), x, curve if is_literal(rate, 1) else op("div", curve, rate))

    return mapped(ctx, formula, input, beta, threshold)


@row("aten.log_sigmoid.default")
def log_sigmoid(ctx: Context, input: Tensor) -> Tensor:
    def formula(x: Value) -> Value:
        return op("sub", op("minimum", x, 0.0), op("log1p", op("exp", op("neg", op("abs", x)))))

    return mapped(ctx, formula, input)  # without overflow


@row("aten.leaky_relu.default")
def leaky_relu(ctx: Context, input: Tensor, negative_slope: Operand = 0.01) -> Tensor:
    return mapped(ctx, _sloped, input, negative_slope)


@row("aten.prelu.default")
def prelu(ctx: Context, input: Tensor, weight: Tensor) -> Tensor:
    return mapped(ctx, _sloped, input, along_channels(weight, len(input)))


def _sloped(x: Value, slope: Value) -> Value:
    return where(op("gt", x, 0.0), x, op("mul", slope, x))


def along_channels(x: Tensor, rank: int) -> Tensor:
    """One value a channel (or one for all, or one scalar), for a tensor [N, C, ...] of this rank."""
    if not len(x) or rank < 2:
        return x
    return Tensor((x.dims[0], *((),) * (rank - 2)), x.value, x.dtype)


@row("aten.elu.default")
def elu(
    ctx: Context, input: Tensor, alpha: Operand = 1, scale: Operand = 1, input_scale: Operand = 1
) -> Tensor:
    def formula(x: Value, a: Value, outer: Value, inner: Value) -> Value:
        curve = op("expm1", scaled(x, inner))
        return where(op("gt", x, 0.0), scaled(x, outer), scaled(curve, _product(a, outer)))

    return mapped(ctx, formula, input, alpha, scale, input_scale)


def _product(a: Value, b: Value) -> Value:
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(a.value * b.value)
    return scaled(a, b)


@row("aten.selu.default")
def selu(ctx: Context, input: Tensor) -> Tensor:
    return elu(ctx, input, 1.6732632423543772, 1.0507009873554805)


@row("aten.celu.default")
def celu(ctx: Context, input: Tensor, alpha: Operand = 1.0) -> Tensor:
    def formula(x: Value, a: Value) -> Value:
        inner = x if is_literal(a, 1) else op("div", x, a)
        return where(op("gt", x, 0.0), x, scaled(op("expm1", inner), a))

    return mapped(ctx, formula, input, alpha)


@row("aten.glu.default")
def glu(ctx: Context, input: Tensor, dim: int = -1) -> Tensor:
    half = ctx.shape[dim]
    x, gate = (cut(ctx, input, dim, start, half) for start in (sizes.ZERO, half))
    aligned = Tensor(x.dims, gate.at(*x.indices), gate.dtype)
    return mapped(ctx, lambda a, b: op("mul", a, op("sigmoid", b)), x, aligned)
