"""Rewrites of axes: several walked as one, and names for the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir.rewriting import rewrite, substitute
from pytorch_to_triton.draft.ir.sizes import product
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Index,
    Load,
    Map,
    Reduce,
    Scan,
    Store,
    Value,
    axes_of,
    bound_axes,
    named,
    walk,
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
        return rebound(cluster, to, dict.fromkeys(axes, one))

    return apply


def rebound(cluster: Cluster, to: Mapping[Axis, Value], axes: Mapping[Axis, Axis]) -> Cluster:
    """Indices replaced everywhere, also where a reduction binds their axes: it binds the new ones then."""

    def binder(v: Value) -> Value | None:
        match v:
            case Reduce(args=args, axes=bound) if set(bound) & axes.keys():
                own = {a: x for a, x in to.items() if a in bound}
                new = tuple(dict.fromkeys(axes.get(a, a) for a in bound))
                return replace(v, args=tuple(substitute(x, own) for x in args), axes=new)
            case Scan(args=args, axis=axis) if axis in axes:
                new_args = tuple(substitute(x, {axis: to[axis]}) for x in args)
                return replace(v, args=new_args, axis=axes[axis])
        return None

    return cluster.map(lambda root: substitute(rewrite(root, binder), to))


def rename(names: Mapping[Axis, str]) -> Rewrite:
    """Axes under other names."""
    axes = {a: Axis(n, a.size) for a, n in names.items()}
    to = {a: Index(b) for a, b in axes.items()}
    return lambda cluster: rebound(cluster, to, axes)


def over_axes_of(others: Sequence[Store], store: Store) -> Store:
    """The store over the axes of others before it that read the same tensor as it lies."""
    known = {v.buffer: v.index for o in others for v in walk(*o.roots) if isinstance(v, Load)}
    free = {a for v in store.roots for a in axes_of(v)}
    bound = {a for v in walk(*store.roots) for a in bound_axes(v)}
    loads = [v for v in walk(*store.roots) if isinstance(v, Load) and v.buffer in known]
    for load in sorted(loads, key=lambda v: -len(axes_of(v))):
        pairs = [(i, j) for i, j in zip(load.index, known[load.buffer], strict=True) if i != j]
        to = {i.axis: j.axis.name for i, j in pairs if isinstance(i, Index) and isinstance(j, Index)}
        # A free axis may be called like a bound one, which makes way; not the other way round.
        mine = free | bound if bound & to.keys() else free
        left = {a.name for a in mine - to.keys()}
        if len(to) == len(pairs) == len({*to.values()}) and left.isdisjoint(to.values()):
            (renamed,) = rename(to)(Cluster("", (store,))).stores
            return renamed
    return store


def in_memory_order(axes: Sequence[Axis], cluster: Cluster) -> tuple[Axis, ...]:
    """The axes in the order in which the operand that varies along most of them lies in memory."""
    found = [[axes_of(i) for i in v.index] for v in cluster.loads()]
    found = [places for places in found if set(axes) <= {a for place in places for a in place}]
    if not found:
        return tuple(axes)
    places = max(found, key=lambda places: len({a for place in places for a in place}))
    dims = {a: max(d for d, place in enumerate(places) if a in place) for a in axes}
    return tuple(sorted(axes, key=lambda a: dims[a]))


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
    return None
