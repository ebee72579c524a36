"""What runs over the same dim, over the same axis."""

import re
from collections.abc import Sequence, Set
from dataclasses import replace

from pytorch_to_triton.draft.ir.rewriting import rewritten, substitute
from pytorch_to_triton.draft.ir.sizes import equal
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Index,
    Load,
    Reduce,
    Store,
    Value,
    axes_of,
    bound_axes,
    walk,
)
from pytorch_to_triton.draft.schedule.axes import rename


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
            like = [b for b in known if _is_same_dim(a, b)]
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


def _stored_alike(others: Sequence[Store], store: Store) -> Store:
    known = dict.fromkeys(a for o in others for i in o.index for a in axes_of(i))
    free = dict.fromkeys(a for v in store.roots for a in axes_of(v))
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


def _is_same_dim(a: Axis, b: Axis) -> bool:
    return equal(a.size, b.size) and _called(a) == _called(b)


def _called(axis: Axis) -> str:
    """What it is called after: `n` for `n_2`."""
    return re.sub(r"(_\d*)+$", "", axis.name)
