"""Rewrites of axes: several walked as one, others named for the reader, those over one dim made one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from pytorch_to_triton.draft.ir.indices import size_of
from pytorch_to_triton.draft.ir.rewriting import rebound, rewritten, substitute
from pytorch_to_triton.draft.ir.sizes import equal, product
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Const,
    Index,
    Load,
    Map,
    Reduce,
    Store,
    Value,
    axes_in_order,
    axes_of,
    bound_axes,
    named,
    walk,
)
from pytorch_to_triton.draft.lower.tensor import positions
from pytorch_to_triton.draft.schedule.schedule import Rewrite, Walk


def fused(name: str, axes: Sequence[Axis]) -> Axis:
    """The axis that several are walked as."""
    return Axis(name, product(a.size for a in axes))


def fuse(name: str, axes: Sequence[Axis]) -> Rewrite:
    """Several axes walked as one: the index along each from the one, by division and remainder."""
    one = fused(name, axes)
    parts = positions(tuple(axes), Index(one))
    to = {a: named(a.name, v) if isinstance(v, Map) else v for a, v in parts.items()}

    def apply(cluster: Cluster) -> Cluster:
        others = {a.name for v in cluster.values() for a in (*axes_of(v), *bound_axes(v)) if a not in to}
        assert name not in others, f"{cluster.name} has another axis {name}"
        return cluster.map(lambda v: rebound(v, to, dict.fromkeys(axes, (one,))))

    return apply


def nest(*loops: tuple[str, Sequence[Axis], Walk]) -> tuple[dict[str, Walk], tuple[Rewrite, ...]]:
    """The walks of axes, those of a name as one, and the rewrites that make them one; a name of none is left
    out."""
    given = [loop for loop in loops if loop[1]]
    return {name: walk for name, _, walk in given}, tuple(fuse(name, axes) for name, axes, _ in given)


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


def lies_in_rows(cluster: Cluster) -> bool:
    """Whether neighbours in memory are reduced together wherever most is read."""
    reduced = {a for r in cluster.reduces() for a in r.axes}
    return all(innermost(load) in reduced for load in cluster.largest_loads())


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


def unified(cluster: Cluster) -> Cluster:
    """The cluster with each reduction over the axes of those before it that are the same dims.

    Axes are the same dim where they are as long and called alike: each input of a function has its own. Axes
    of the results come first, where something is reduced over them as well. So are axes along both of which a
    tensor is read alike.
    """
    free, loads = cluster.free(), frozenset(cluster.loads())
    reduced = {a for r in cluster.reduces() for a in r.axes}
    known = [a for a in free if a in reduced]

    def over_known(v: Value) -> Value | None:
        if not isinstance(v, Reduce):
            return None
        to: dict[Axis, Axis] = {}
        for a in (a for a in v.axes if a not in known):
            taken = {*axes_of(v), *v.axes, *to.values()}
            like = [b for b in known if equal(a.size, b.size) and _called(a) == _called(b)]
            if axes_of(v) <= set(free):
                again = (b for b in (*free, *known) if equal(a.size, b.size))
                like += [b for b in again if _reads_again(a, b, loads)]
            if (same := next((b for b in like if b not in taken), None)) is not None:
                to[a] = same
            known.append(to.get(a, a))
        args = tuple(substitute(x, {a: Index(b) for a, b in to.items()}) for x in v.args)
        return replace(v, args=args, axes=tuple(to.get(a, a) for a in v.axes))

    return rewritten(cluster, over_known)


def over_axes_of(others: Sequence[Store], store: Store) -> Store:
    """The store over the axes of others before it that read the same tensor, or lie along the same dims."""
    return _stored_alike(others, _read_alike(others, store))


def _read_alike(others: Sequence[Store], store: Store) -> Store:
    known = {v.buffer: axes_in_order(v) for o in others for v in walk(*o.roots) if isinstance(v, Load)}
    free = {a for v in store.roots for a in axes_of(v)}
    bound = {a for v in walk(*store.roots) for a in bound_axes(v)}
    loads = [v for v in walk(*store.roots) if isinstance(v, Load) and v.buffer in known]
    for load in sorted(loads, key=lambda v: -len(axes_of(v))):
        pairs = [*zip(axes_in_order(load), known[load.buffer], strict=False)]
        to = {a: b.name for a, b in pairs if a != b}
        # A free axis may be called like a bound one, which makes way; not the other way round.
        mine = free | bound if bound & to.keys() else free
        left = {a.name for a in mine - to.keys()}
        alike = len(axes_of(load)) == len(known[load.buffer]) and all(a.size == b.size for a, b in pairs)
        if alike and left.isdisjoint(to.values()):
            (renamed,) = rename(to)(Cluster("", (store,))).stores
            return renamed
    return store


def _stored_alike(others: Sequence[Store], store: Store) -> Store:
    known = dict.fromkeys(a for o in others for i in o.index for a in axes_in_order(i))
    free = dict.fromkeys(a for v in store.roots for a in axes_in_order(v))
    to: dict[Axis, str] = {}
    for a in (a for a in free if a not in known):
        like = (b.name for b in known if b not in free and a.size == b.size and _called(a) == _called(b))
        if (same := next((b for b in like if b not in to.values()), None)) is not None:
            to[a] = same
    (renamed,) = rename(to)(Cluster("", (store,))).stores
    return renamed


def _reads_again(bound: Axis, free: Axis, loads: Set[Load]) -> bool:
    """Whether a tensor that is read along the one axis is read element by element along the other too."""
    read = (v for v in loads if bound in axes_of(v) and free not in axes_of(v))
    return any(substitute(v, {bound: Index(free)}) in loads for v in read)


def _called(axis: Axis) -> str:
    """What it is called after: `n` for `n_2`."""
    return re.sub(r"(_\d*)+$", "", axis.name)
