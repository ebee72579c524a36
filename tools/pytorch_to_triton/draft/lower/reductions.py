"""Reductions over dimensions, running totals and ranks: sums, extremes, variances, norms, softmaxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sympy

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, plus, times
from pytorch_to_triton.draft.ir.monoids import (
    ARGMAX,
    ARGMIN,
    LAST_ARGMAX,
    LAST_ARGMIN,
    LOG_SUM_EXP,
    MAX,
    MIN,
    PEAK,
    PROD,
    SUM,
)
from pytorch_to_triton.draft.ir.values import Axis, Const, Get, Index, Monoid, Reduce, Scan, Value, op
from pytorch_to_triton.draft.lower.arithmetic import power
from pytorch_to_triton.draft.lower.row import (
    Context,
    Refused,
    RowFunction,
    all_dims,
    cast,
    count,
    first_of,
    inside,
    mapped,
    name_of,
    row,
    where,
)
from pytorch_to_triton.draft.lower.tensor import Tensor, position

Dims = Sequence[int] | int | None


def _folded(monoid: Monoid) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
        return ctx.reduce(monoid, cast(input, ctx.dtype), all_dims(input, dim), keepdim)

    return lowered


for _name, _along_dims, _monoid in (("sum", "dim_IntList", SUM), ("prod", "dim_int", PROD)):
    _lowered = row(f"aten.{_name}.default", arguments="input dtype")(_folded(_monoid))
    row(f"aten.{_name}.{_along_dims}", arguments="input dim keepdim dtype")(_lowered)


@row("aten.mean.default", arguments="input dtype")
@row("aten.mean.dim", arguments="input dim keepdim dtype")
def mean(ctx: Context, input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    return average(ctx, cast(input, ctx.dtype), all_dims(input, dim), keepdim=keepdim)


def average(
    ctx: Context, x: Tensor, dims: Sequence[int], *, keepdim: bool, name: str | None = None
) -> Tensor:
    """The mean over dimensions, in x's dtype."""
    total = ctx.reduce(SUM, x, dims, keepdim, dtype=x.dtype)
    return replace(total, value=op("div", total.value, extent(count(x, dims)), name=name))


def _ordered(x: Tensor) -> Tensor:
    return cast(x, "int32") if x.kind == "bool" else x


def _unordered(found: Tensor, x: Tensor) -> Tensor:
    return replace(found, value=op("ne", found.value, 0)) if x.kind == "bool" else found


def _extreme(monoid: Monoid) -> RowFunction:
    """Of bools: by way of ints."""

    def lowered(ctx: Context, input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
        kept = ctx.reduce(monoid, _ordered(input), all_dims(input, dim), keepdim, dtype=input.dtype)
        return _unordered(kept, input)

    return lowered


def _placed(monoid: Monoid) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        return _best(monoid, input, all_dims(input, dim), keepdim=keepdim)

    return lowered


def _place(monoid: Monoid) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return _best(monoid, input, all_dims(input, dim), keepdim=keepdim)[1]

    return lowered


for _name, _monoid, _with_place in (("max", MAX, ARGMAX), ("min", MIN, ARGMIN)):
    _lowered = row(f"aten.{_name}.default", arguments="input")(_extreme(_monoid))
    row(f"aten.a{_name}.default")(_lowered)
    row(f"aten.{_name}.dim")(_placed(_with_place))
    row(f"aten.arg{_name}.default")(_place(_with_place))


def _best(monoid: Monoid, x: Tensor, dims: Sequence[int], *, keepdim: bool) -> tuple[Tensor, Tensor]:
    """The best value and its position among the elements of these dimensions."""
    at: Value = Const(0)
    for d in dims:
        at = plus(times(at, x.shape[d]), position(x.dims[d]))
    axes = tuple(a for d in dims for a in x.dims[d])
    kept = tuple(() if i in dims else d for i, d in enumerate(x.dims) if keepdim or i not in dims)
    if not axes:
        return Tensor(kept, x.value, x.dtype), Tensor(kept, at, "int64")
    found = Reduce(monoid, (_ordered(x).value, at), axes)
    best = _unordered(Tensor(kept, Get(found, 0), x.dtype), x)
    return best, Tensor(kept, Get(found, 1), "int64")


@row("aten.any.default", arguments="input")
@row("aten.any.dim", "aten.any.dims")
def any_(ctx: Context, input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether the largest of the truths as numbers is more than 0: of none it is -inf."""
    truths = cast(cast(input, "bool"), "float32")
    found = ctx.reduce(PEAK, truths, _given(input, dim), keepdim, dtype="bool")
    return replace(found, value=found.value > 0.0)


def _given(x: Tensor, dims: Dims) -> tuple[int, ...]:
    """To any and all, no dimension given is none."""
    return () if dims is not None and not isinstance(dims, int) and not len(dims) else all_dims(x, dims)


def moments(
    ctx: Context, x: Tensor, dims: Sequence[int], correction: float = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """What deviates from the mean, the mean and the variance over dimensions, which are kept."""
    mean = ctx.stored("mean", statistic(average(ctx, x, dims, keepdim=True, name="mean")))
    centered = ctx.pointwise("sub", x, mean, dtype=x.dtype, name="centered")
    squares = ctx.pointwise("square", centered, dtype=x.dtype)
    total = ctx.reduce(SUM, squares, dims, keepdim=True, dtype=x.dtype)
    var = replace(total, value=op("div", total.value, _freedom(x, dims, correction), name="var"))
    return centered, mean, var


def statistic(x: Tensor) -> Tensor:
    """A statistic of halves is float32."""
    return replace(x, dtype=x.dtype if x.dtype == "float64" else "float32")


def _freedom(x: Tensor, dims: Sequence[int], correction: float) -> Value:
    n = count(x, dims)
    if correction == int(correction):
        left = n - int(correction)
        return extent(sympy.Max(left, sizes.ZERO) if correction else left)
    if not n.is_Integer:
        raise Refused("its correction is no whole number")
    return Const(max(float(n) - correction, 0.0))


@row("aten.var_mean.correction")
def var_mean(
    ctx: Context, input: Tensor, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = all_dims(input, dim)
    inner = replace(ctx, stored=inside)
    _, mean, var = moments(inner, input, dims, 1 if correction is None else correction)
    kept = tuple(d for i, d in enumerate(var.dims) if keepdim or i not in dims)
    return replace(var, dims=kept), replace(mean, dims=kept, dtype=input.dtype)


row("aten.var.correction")(first_of(var_mean))


def vector_norm(ctx: Context, x: Tensor, ord: Any, dims: Sequence[int], *, keepdim: bool = False) -> Tensor:
    """The norm of this order over dimensions, in the result's dtype."""
    if not isinstance(ord, int | float):
        raise Refused("the norm's order is no literal")

    def reduced(monoid: Any, term: Any) -> Tensor:
        return ctx.reduce(monoid, mapped(ctx, term, cast(x, ctx.dtype)), dims, keepdim)

    match ord:
        case math.inf:
            return reduced(MAX, _magnitude)
        case _ if ord == -math.inf:
            return reduced(MIN, _magnitude)
        case 0:
            return reduced(SUM, lambda v: where(op("ne", v, 0.0), 1.0, 0.0))
        case 1:
            return reduced(SUM, _magnitude)
        case 2:
            total = reduced(SUM, lambda v: op("square", v))
            return replace(total, value=op("sqrt", total.value))
    total = reduced(SUM, lambda v: power(_magnitude(v), ord))
    return replace(total, value=power(total.value, 1.0 / ord))


def _magnitude(v: Value) -> Value:
    return op("abs", v)


@row("aten.linalg_vector_norm.default", arguments="input ord dim keepdim dtype")
def linalg_vector_norm(
    ctx: Context, input: Tensor, ord: Any = 2, dim: Dims = None, keepdim: bool = False
) -> Tensor:
    return vector_norm(ctx, input, ord, all_dims(input, dim), keepdim=keepdim)


@row("aten.dist.default")
def dist(ctx: Context, input: Tensor, other: Tensor, p: Any = 2) -> Tensor:
    apart = ctx.pointwise("sub", input, other)
    return vector_norm(ctx, apart, p, all_dims(apart, None))


@row("aten._cdist_forward.default", arguments="x1 x2 p compute_mode")
def cdist(ctx: Context, x1: Tensor, x2: Tensor, p: float) -> Tensor:
    x2 = ctx.apart(x2, x1.dims)
    one = replace(x1, dims=(*x1.dims[:-1], (), x1.dims[-1]))
    other = replace(x2, dims=(*x2.dims[:-2], (), *x2.dims[-2:]))
    # Whether PyTorch multiplies matrices for it is a matter of its speed.
    return vector_norm(ctx, ctx.pointwise("sub", one, other), p, (len(one) - 1,))


def _with_maxima(ctx: Context, input: Tensor, dim: Dims) -> tuple[Tensor, Tensor]:
    """The operand in the result's dtype, and its maxima along dimensions, which are kept."""
    x = cast(input, ctx.dtype)
    return x, ctx.reduce(PEAK, x, all_dims(x, dim), keepdim=True, name=f"{name_of(input)}_max")


@row("aten.softmax.int", arguments="input dim dtype")
@row("aten._softmax.default", arguments="input dim half_to_float")
def softmax(ctx: Context, input: Tensor, dim: int) -> Tensor:
    x, top = _with_maxima(ctx, input, dim)
    numerator = mapped(ctx, lambda v, m: op("exp", v - m, name="numerator"), x, top)
    total = ctx.reduce(SUM, numerator, all_dims(x, dim), keepdim=True, name="denominator")
    return ctx.pointwise("div", numerator, total)


@row("aten.log_softmax.int", arguments="input dim dtype")
@row("aten._log_softmax.default", arguments="input dim half_to_float")
def log_softmax(ctx: Context, input: Tensor, dim: int) -> Tensor:
    x, top = _with_maxima(ctx, input, dim)
    shifted = ctx.pointwise("sub", x, top, name="shifted")
    total = ctx.reduce(SUM, ctx.pointwise("exp", shifted), all_dims(x, dim), keepdim=True)
    log_sum = replace(total, value=op("log", total.value, name="log_sum"))
    return ctx.pointwise("sub", shifted, log_sum)


@row("aten.logsumexp.default")
def logsumexp(ctx: Context, input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    dims = all_dims(input, dim)
    x, top = _with_maxima(ctx, input, dim)
    shift = mapped(ctx, lambda m: where(op("is_inf", m), 0.0, m), top)
    shares = mapped(ctx, lambda v, s: op("exp", v - s), x, shift)
    total = ctx.reduce(SUM, shares, dims, keepdim=True)
    found = mapped(ctx, lambda t, s: op("log", t) + s, total, shift)
    kept = found.dims if keepdim else tuple(d for i, d in enumerate(found.dims) if i not in dims)
    return replace(found, dims=kept)


def _running(monoid: Monoid) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, dim: int) -> Tensor:
        return running(ctx, monoid, cast(input, ctx.dtype), dim)

    return lowered


def running(ctx: Context, monoid: Monoid, x: Tensor, dim: int) -> Tensor:
    """The monoid over all elements along a dimension up to each of them."""
    x, axis = _along(ctx, x, dim)
    return x if axis is None else replace(x, value=Scan(monoid, (x.value,), axis, Index(axis)))


def _best_so_far(monoid: Monoid) -> RowFunction:
    def lowered(ctx: Context, input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        x, axis = _along(ctx, input, dim)
        if axis is None:
            return x, replace(x, value=Const(0), dtype="int64")
        found = Scan(monoid, (_ordered(x).value, Index(axis)), axis, Index(axis))
        best = _unordered(replace(x, value=Get(found, 0)), x)
        return best, replace(x, value=Get(found, 1), dtype="int64")

    return lowered


for _name, _monoid in (("cumsum", SUM), ("cumprod", PROD)):
    row(f"aten.{_name}.default", arguments="input dim dtype")(_running(_monoid))
row("aten.logcumsumexp.default")(_running(LOG_SUM_EXP))
for _name, _monoid in (("cummax", LAST_ARGMAX), ("cummin", LAST_ARGMIN)):
    row(f"aten.{_name}.default")(_best_so_far(_monoid))


def _along(ctx: Context, x: Tensor, dim: int) -> tuple[Tensor, Axis | None]:
    """The tensor with one axis, or none, in this dimension, and that axis."""
    if not len(x):
        return x, None
    at = dim % len(x)
    axes = x.dims[at]
    if len(axes) < 2:
        return x, next(iter(axes), None)
    whole = ctx.axis(axes[0].name, x.shape[at])
    index = [Index(whole) if i == at else p for i, p in enumerate(x.indices)]
    merged = replace(x, dims=(*x.dims[:at], (whole,), *x.dims[at + 1 :]), value=x.at(*index))
    return merged, whole
