"""Reductions over dimensions: sums, extremes and where they stand, logic, spread, norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir.indices import extent, plus, times
from pytorch_to_triton.draft.ir.monoids import ARGMAX, ARGMIN, MAX, MIN, PEAK, PROD, SUM
from pytorch_to_triton.draft.ir.values import Const, Get, Monoid, Reduce, Value, op
from pytorch_to_triton.draft.lower.row import Context, all_dims, cast, count, row
from pytorch_to_triton.draft.lower.tensor import Tensor, position

Dims = Sequence[int] | int | None


@row("aten.sum.default", arguments="input dtype")
def sum_all(ctx: Context, input: Tensor) -> Tensor:
    return sum_(ctx, input, None)


@row("aten.sum.dim_IntList", arguments="input dim keepdim dtype")
def sum_(ctx: Context, input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    return ctx.reduce(SUM, cast(input, ctx.dtype), all_dims(input, dim), keepdim)


@row("aten.mean.default", arguments="input dtype")
def mean_all(ctx: Context, input: Tensor) -> Tensor:
    return mean(ctx, input, None)


@row("aten.mean.dim", arguments="input dim keepdim dtype")
def mean(ctx: Context, input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    return average(ctx, cast(input, ctx.dtype), all_dims(input, dim), keepdim=keepdim)


def average(
    ctx: Context, x: Tensor, dims: Sequence[int], *, keepdim: bool, name: str | None = None
) -> Tensor:
    """The mean over dimensions, in x's dtype."""
    total = ctx.reduce(SUM, x, dims, keepdim, dtype=x.dtype)
    return replace(total, value=op("div", total.value, extent(count(x, dims)), name=name))


@row("aten.prod.default", arguments="input dtype")
def prod_all(ctx: Context, input: Tensor) -> Tensor:
    return ctx.reduce(PROD, cast(input, ctx.dtype), all_dims(input, None))


@row("aten.prod.dim_int", arguments="input dim keepdim dtype")
def prod(ctx: Context, input: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    return ctx.reduce(PROD, cast(input, ctx.dtype), all_dims(input, dim), keepdim)


def _extreme(ctx: Context, monoid: Monoid, x: Tensor, dims: Dims, *, keepdim: bool = False) -> Tensor:
    """Of bools: by way of ints."""
    kept = ctx.reduce(monoid, _ordered(x), all_dims(x, dims), keepdim, dtype=x.dtype)
    return _unordered(kept, x)


def _ordered(x: Tensor) -> Tensor:
    return cast(x, "int32") if x.kind == "bool" else x


def _unordered(found: Tensor, x: Tensor) -> Tensor:
    return replace(found, value=op("ne", found.value, 0)) if x.kind == "bool" else found


@row("aten.amax.default")
def amax(ctx: Context, input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    return _extreme(ctx, MAX, input, dim, keepdim=keepdim)


@row("aten.amin.default")
def amin(ctx: Context, input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    return _extreme(ctx, MIN, input, dim, keepdim=keepdim)


@row("aten.max.default")
def max_all(ctx: Context, input: Tensor) -> Tensor:
    return _extreme(ctx, MAX, input, None)


@row("aten.min.default")
def min_all(ctx: Context, input: Tensor) -> Tensor:
    return _extreme(ctx, MIN, input, None)


@row("aten.max.dim")
def max_dim(ctx: Context, input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _best(ctx, ARGMAX, input, all_dims(input, dim), keepdim=keepdim)


@row("aten.min.dim")
def min_dim(ctx: Context, input: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _best(ctx, ARGMIN, input, all_dims(input, dim), keepdim=keepdim)


@row("aten.argmax.default")
def argmax(ctx: Context, input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _best(ctx, ARGMAX, input, all_dims(input, dim), keepdim=keepdim)[1]


@row("aten.argmin.default")
def argmin(ctx: Context, input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _best(ctx, ARGMIN, input, all_dims(input, dim), keepdim=keepdim)[1]


def _best(
    ctx: Context, monoid: Monoid, x: Tensor, dims: Sequence[int], *, keepdim: bool
) -> tuple[Tensor, Tensor]:
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


def _any(ctx: Context, truths: Tensor, dims: Sequence[int], *, keepdim: bool = False) -> Tensor:
    """Whether the largest of the truths as numbers is more than 0: of none it is -inf."""
    found = ctx.reduce(PEAK, cast(truths, "float32"), dims, keepdim, dtype="bool")
    return replace(found, value=op("gt", found.value, 0.0))


@row("aten.any.default")
def any_all(ctx: Context, input: Tensor) -> Tensor:
    return _any(ctx, cast(input, "bool"), all_dims(input, None))


@row("aten.any.dim", "aten.any.dims")
def any_(ctx: Context, input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    return _any(ctx, cast(input, "bool"), _given(input, dim), keepdim=keepdim)


def _given(x: Tensor, dims: Dims) -> tuple[int, ...]:
    """To any and all, no dimension given is none."""
    return () if dims is not None and not isinstance(dims, int) and not len(dims) else all_dims(x, dims)
