"""Rewrites of axes: several walked as one, and names for the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytorch_to_triton.draft.ir.indices import size_of
from pytorch_to_triton.draft.ir.rewriting import rebound
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Const,
    Index,
    Load,
    Map,
    Value,
    axes_in_order,
    axes_of,
    bound_axes,
    named,
)
from pytorch_to_triton.draft.lower.tensor import positions
from pytorch_to_triton.draft.schedule.schedule import Rewrite


def fused(name: str, axes: Sequence[Axis]) -> Axis:
    """The axis that several are walked as."""
    return Axis(name, product(a.size for a in axes))


def fuse(name: str, axes: Sequence[Axis]) -> Rewrite:
    """Several axes walked as one: the index along each from the one, by division and remainder."""
    one = fused(name, axes)
    parts = positions(tuple(axes), Index(one))
    to = {a: named(a.name, v) if isinstance(v, Map) else v for a, v in parts.items()}

    def apply(cluster: Cluster) -> Cluster:
        return cluster.map(lambda v: rebound(v, to, dict.fromkeys(axes, (one,))))

    return apply


def merged(cluster: Cluster) -> Cluster:
    """Axes that the cluster never tells apart as one: those of a row that only others look at in groups."""
    tried: set[tuple[Axis, Axis]] = set()
    while fresh := [p for p in _neighbours(cluster) if p not in tried]:
        tried.add(fresh[0])
        whole = Axis(fresh[0][0].name, product(a.size for a in fresh[0]))
        joined = fuse(whole.name, fresh[0])(cluster)
        if not any(_divides(v, whole) for v in joined.values()):
            cluster = joined
    return cluster


def _neighbours(cluster: Cluster) -> list[tuple[Axis, Axis]]:
    """Axes of which the second always counts inside of the first."""
    apart = {i.axis for v in cluster.values() if isinstance(v, Load) for i in v.index if isinstance(i, Index)}
    apart |= {i.axis for i in cluster.roots if isinstance(i, Index)}
    bound = [set(bound_axes(v)) for v in cluster.values()]
    pairs: dict[tuple[Axis, Axis], None] = {}
    for v in cluster.values():
        match v:
            case Map(fn="add", args=(Map(fn="mul", args=(high, n)), Index(axis=inner))):
                outer = high.args[-1] if isinstance(high, Map) and high.fn == "add" else high
                if isinstance(outer, Index) and size_of(n) == inner.size:
                    pairs[outer.axis, inner] = None
    return [p for p in pairs if apart.isdisjoint(p) and all(len(b.intersection(p)) != 1 for b in bound)]


def _divides(v: Value, axis: Axis) -> bool:
    return isinstance(v, Map) and v.fn in ("floordiv", "mod") and axis in axes_of(v)


def rename(names: Mapping[Axis, str]) -> Rewrite:
    """Axes under other names."""
    axes = {a: (Axis(n, a.size),) for a, n in names.items()}
    to = {a: Index(b) for a, (b,) in axes.items()}
    return lambda cluster: cluster.map(lambda v: rebound(v, to, axes))


def in_memory_order(axes: Sequence[Axis], cluster: Cluster) -> tuple[Axis, ...]:
    """The axes in the order in which the operand that varies along most of them lies in memory."""
    found = [[axes_in_order(i) for i in v.index] for v in cluster.loads()]
    found = [places for places in found if set(axes) <= {a for place in places for a in place}]
    if not found:
        return tuple(axes)
    places = max(found, key=lambda places: len({a for place in places for a in place}))
    lies = {a: (d, n) for d, place in enumerate(places) for n, a in enumerate(place)}
    return tuple(sorted(axes, key=lambda a: lies[a]))


def innermost(load: Load) -> Axis | None:
    """The axis along which neighbours in memory lie."""
    places = [i for i, size in zip(load.index, load.buffer.shape, strict=True) if size != 1]
    return _next_along(places[-1]) if places else None


def _next_along(place: Value) -> Axis | None:
    match place:
        case Index(axis=a):
            return a
        case Map(fn="add", args=(_, Index(axis=a))) | Map(fn="add", args=(Index(axis=a), _)):
            return a
        case Map(fn="sub" | "add" | "mod", args=(x, _)):
            return _next_along(x)
        case Map(fn="mul", args=(x, Const(value=2 | 3 | 4))):
            return _next_along(x)
    return None
