"""Statistics in one pass: a maximum with a sum of exponentials, a mean with a sum of squared deviations, or
these deviations with how far the mean is off."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from pytorch_to_triton.draft.ir.indices import extent, size_of
from pytorch_to_triton.draft.ir.monoids import (
    MAX,
    ONLINE_LOG_SUM_EXP,
    ONLINE_SOFTMAX,
    PEAK,
    SUM,
    WEIGHTED_SOFTMAX,
    WELFORD,
)
from pytorch_to_triton.draft.ir.rewriting import rewrite, rewritten
from pytorch_to_triton.draft.ir.sizes import equal, product
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Const,
    Get,
    Map,
    Monoid,
    Reduce,
    Value,
    axes_of,
    op,
    walk,
)

SOFTMAXES = (ONLINE_SOFTMAX, WEIGHTED_SOFTMAX, ONLINE_LOG_SUM_EXP)


def online(cluster: Cluster) -> Cluster:
    """The same cluster with statistics that are taken together."""
    return online_softmax(rewritten(cluster, _squares))


def online_softmax(cluster: Cluster) -> Cluster:
    """The same for maxima with sums of exponentials alone."""
    stores = tuple(replace(s, value=_with_peaks(s.value)) for s in cluster.stores)
    return _shared(rewritten(replace(cluster, stores=stores), _exponentials))


def _with_peaks(value: Value) -> Value:
    """The value with maxima that ignore NaN where they do already, or it is NaN all the same: the sum below
    the maximum shows a NaN, and what is below it in a row of nothing but -inf."""

    def peak(v: Value) -> Value | None:
        match v:
            case Reduce(monoid=m, args=(Map(fn="where", args=(Map(fn="is_nan", args=(y,)), low, x)),)) if (
                m == MAX and x == y and low == Const(-inf)
            ):
                return replace(v, monoid=PEAK, args=(x,))
            case Reduce(monoid=m, args=(x,), axes=axes) if m == MAX:
                below = op("sub", x, v)
                total = Reduce(SUM, (op("exp", below),), axes)
                if _is_nan_with(value, below) and _is_nan_with(value, total):
                    return replace(v, monoid=PEAK)
        return None

    return rewrite(value, peak)


NAN_PASSES = frozenset({"add", "sub", "mul", "div", "exp", "log", "neg", "to_float"})
"""Functions that are NaN where one of their operands is."""


def _is_nan_with(value: Value, part: Value) -> bool:
    """Whether the value is NaN wherever that part of it is."""
    if value == part:
        return True
    return (
        isinstance(value, Map) and value.fn in NAN_PASSES and any(_is_nan_with(x, part) for x in value.args)
    )


def _exponentials(v: Value) -> Value | None:
    """sum(exp(x - max(x)) [* w]); a factor that does not vary along the axis is taken out first."""
    match v:
        case Reduce(monoid=m, args=(Map(fn="mul", args=(Map(fn="div", args=(p, total)), w)),), axes=axes) if (
            m == SUM and not axes_of(total) & set(axes)
        ):
            inner = Reduce(SUM, (p * w,), axes)
            return _of_any(axes, op("div", _exponentials(inner) or inner, total, name=v.name))
        case Reduce(monoid=m, args=(Map(fn="mul", args=(p, w)),), axes=axes) if m == SUM:
            found = _shifted(p, axes)
            # A weight that waits for a pass over the axes finds the maximum known.
            waits = any(isinstance(r, Reduce) and set(r.axes) & set(axes) for r in walk(w))
            if found and found[1] == ONLINE_SOFTMAX and not waits:
                return Get(Reduce(WEIGHTED_SOFTMAX, (found[0], w), axes), 2, name="acc")
        case Reduce(monoid=m, args=(p,), axes=axes) if m == SUM and (found := _shifted(p, axes)):
            x, monoid = found
            of = getattr(x, "name", None)
            return Get(Reduce(monoid, (x,), axes), 1, name=v.name or (f"{of}_sum" if of else None))
    return None


def _of_any(axes: tuple[Axis, ...], quotient: Value) -> Value:
    """A sum of quotients as a quotient of the sum: of no terms at all it is 0, not 0 / 0."""
    for axis in axes:
        if not axis.size.is_Integer:
            quotient = op("where", op("eq", extent(axis.size), 0), 0.0, quotient)
    return quotient


def _shifted(p: Value, axes: tuple[Axis, ...]) -> tuple[Value, Monoid] | None:
    """x and the monoid that takes it, where p is exp(x - max(x))."""
    match p:
        case Map(fn="exp", args=(Map(fn="sub", args=(x, Reduce(monoid=m, args=(y,), axes=over))),)):
            return (x, ONLINE_SOFTMAX) if m == PEAK and x == y and over == axes else None
        case Map(fn="exp", args=(Map(fn="sub", args=(x, Map(fn="where", args=(infinite, _, top)))),)):
            match top:
                case Reduce(monoid=m, args=(y,), axes=over) if m == PEAK and x == y and over == axes:
                    low = op("eq", top, -inf)
                    return x, ONLINE_SOFTMAX if infinite == low else ONLINE_LOG_SUM_EXP
    return None


def _squares(v: Value) -> Value | None:
    """sum((x - mean(x))**2), the mean being sum(x) / n."""
    match v:
        case Reduce(monoid=m, args=(Map(fn="square", args=(Map(fn="sub", args=(x, mean)),)),), axes=axes) if (
            m == SUM and _is_mean(mean, x, axes)
        ):
            return Get(Reduce(WELFORD, (x,), axes), 2, name=v.name)
    return None


def with_corrected_means(cluster: Cluster) -> Cluster:
    """The same cluster, whose deviations are from a mean to which their own mean is added.

    Equal values have a standard deviation of almost nothing, and a rounding error of the mean is divided by
    it. The pass that squares the deviations adds them up as well.
    """
    better: dict[Value, Value] = {}
    for r in cluster.reduces():
        match _squares(r) and r.args[0]:
            case Map(args=(Map(args=(x, Map(fn=divided, args=(_, n)) as mean)) as deviation,)):
                off = op(divided, Reduce(SUM, (deviation,), r.axes), n)
                off = op("where", op("lt", op("abs", off), inf), off, 0.0)  # not where the mean is infinite
                exact = op("add", mean, off, name=f"corrected_{getattr(mean, 'name', None) or 'mean'}")
                better[deviation] = op("sub", x, exact, name=deviation.name)
    plain = {new: d for d, new in better.items()}

    def corrected(v: Value) -> Value | None:
        match v:
            case Map(fn="square", args=(d,)) if d in plain:
                return replace(v, args=(plain[d],))
        return better.get(v)

    return rewritten(cluster, corrected)


def _is_mean(v: Value, x: Value, axes: tuple[Axis, ...]) -> bool:
    match v:
        case Map(fn="div" | "div_literal", args=(Reduce(monoid=m, args=(y,), axes=over), n)):
            return m == SUM and y == x and over == axes and _counts(n, axes)
    return False


def _counts(n: Value, axes: tuple[Axis, ...]) -> bool:
    match n:
        case Map(fn="to_float", args=(whole,)):
            return _counts(whole, axes)
    size = size_of(n)
    if size is None:
        number = getattr(n, "value", None)
        return bool(number is not None and product(a.size for a in axes) == number)
    return equal(size, product(a.size for a in axes))


def _shared(cluster: Cluster) -> Cluster:
    """Means, maxima and sums of what is carried anyway."""
    means = {(r.args[0], r.axes): r for r in cluster.reduces() if r.monoid == WELFORD}

    def mean(v: Value) -> Value | None:
        match v:
            case Map(args=(Reduce(args=(x,), axes=axes), _)) if (x, axes) in means and _is_mean(v, x, axes):
                return Get(means[x, axes], 1, name=v.name)
        return None

    cluster = rewritten(cluster, mean)
    carried = [r for r in cluster.reduces() if r.monoid in SOFTMAXES]
    # What weights as well carries all that the plain one does.
    softmaxes = {(r.args[0], r.axes): r for r in sorted(carried, key=lambda r: len(r.args))}

    def shared(v: Value) -> Value | None:
        match v:
            case Reduce(monoid=m, args=(x,), axes=axes) if m == PEAK and (x, axes) in softmaxes:
                return Get(softmaxes[x, axes], 0, name=v.name)
            case Get(of=Reduce(monoid=m, args=(x, *_), axes=axes), part=1) if (
                m == ONLINE_SOFTMAX and (x, axes) in softmaxes
            ):
                return Get(softmaxes[x, axes], 1, name=v.name)
        return None

    return rewritten(cluster, shared)


def is_online(cluster: Cluster) -> bool:
    """Whether statistics were taken together."""
    return any(isinstance(v, Reduce) and v.monoid in (*SOFTMAXES, WELFORD) for v in walk(*cluster.roots))
