"""A store for each part of an axis in place of a choice for each element.

Tensors of one size that lie one behind the other in a dimension, or in turn, are its parts. All are computed
side by side, so that what they have in common is read and computed once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import plus, size_of, times
from pytorch_to_triton.draft.ir.rewriting import rewritten, substitute
from pytorch_to_triton.draft.ir.sizes import ONE, Size
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Const,
    Index,
    Load,
    Map,
    Reduce,
    Value,
    axes_of,
    walk,
)
from pytorch_to_triton.draft.lower.tensor import position
from pytorch_to_triton.draft.schedule.axes import innermost
from pytorch_to_triton.draft.schedule.blocks import item_bytes

MOST = 4
"""Parts that are computed side by side."""


@dataclass(frozen=True)
class Parts:
    """An axis in parts of one size."""

    axis: Axis
    count: int
    in_turn: bool
    """Whether neighbours are of different parts."""

    @property
    def size(self) -> Size:
        """Elements of a part."""
        return sizes.FloorDiv(self.axis.size, sizes.size(self.count))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axis along a part; none where a part is one element."""
        return () if self.size == ONE else (Axis(self.axis.name, self.size),)

    def index(self, part: int) -> Value:
        """Where the elements of a part lie on the axis."""
        inner = position(self.axes)
        if self.in_turn:
            return plus(times(inner, sizes.size(self.count)), Const(part))
        return plus(inner, times(Const(part), self.size))

    def applied(self, cluster: Cluster) -> Cluster:
        """The cluster with a store for each part; what all parts have in common is stored once."""
        places = [partial(substitute, to={self.axis: self.index(n)}) for n in range(self.count)]
        return Cluster(cluster.name, tuple(dict.fromkeys(s.map(at) for s in cluster.stores for at in places)))


def in_parts(cluster: Cluster) -> tuple[Cluster, Parts] | None:
    """The cluster with nothing left to choose along an axis; None where no axis has such parts."""
    bound = {a for r in cluster.reduces() for a in r.axes} | {s.axis for s in cluster.scans()}
    for parts in dict.fromkeys(_candidates(cluster)):
        if parts.axis not in bound and not any(s.where for s in cluster.stores):
            whole = parts.applied(cluster)
            if (parts.in_turn or parts.size == ONE) and _reads_shorter(whole):
                continue
            if not any(_asks(c, parts.axis.name) for c in _conditions(whole)):
                return whole, parts
    return None


def _reads_shorter(cluster: Cluster) -> bool:
    """Whether a thread would read many short elements at once, and store each far from the next."""
    stored, free = min(item_bytes(s.buffer) for s in cluster.stores), {*cluster.free()}
    beside = (v for v in cluster.largest_loads() if axes_of(v) <= free)
    return any(item_bytes(v.buffer) < stored for v in beside)


def _candidates(cluster: Cluster) -> Iterator[Parts]:
    """The parts that conditions tell apart."""
    for condition in _conditions(cluster):
        for v in walk(condition, into=lambda v: not isinstance(v, Load)):
            match v:
                case Map(fn="lt", args=(Index(axis=a), n)) if (part := size_of(n)) is not None:
                    counts = [k for k in range(2, MOST + 1) if sizes.equal(part * k, a.size)]
                    yield from (Parts(a, k, in_turn=False) for k in counts)
                case Map(fn="eq", args=(Index(axis=a), Const())) if a.size.is_Integer and a.size <= MOST:
                    yield Parts(a, int(a.size), in_turn=False)
                case Map(fn="mod", args=(x, Const(value=int(k)))) if 1 < k <= MOST:
                    along = [a for a in axes_of(x) if sizes.divides(sizes.size(k), a.size)]
                    yield from (Parts(a, k, in_turn=True) for a in along if len(along) == 1)


def _conditions(cluster: Cluster) -> Iterator[Value]:
    """What decides which of two values an element is, or whether it is read."""
    for v in cluster.values():
        match v:
            case Map(fn="where", args=(condition, _, _)):
                yield condition
            case Load(where=condition) if condition is not None:
                yield condition


def _asks(condition: Value, axis: str) -> bool:
    """Whether the condition is one on the index along the axis."""
    inside = walk(condition, into=lambda v: not isinstance(v, Load))
    return any(isinstance(v, Index) and v.axis.name == axis for v in inside)


def reduced_by_part(cluster: Cluster) -> Cluster:
    """The cluster with the few parts of a row put together before it is reduced.

    Where its results go on with an element of each part, or each part is computed in its own way.
    """
    free = set(cluster.free())

    def put_together(v: Value) -> Value | None:
        if not isinstance(v, Reduce) or not v.monoid.is_plain:
            return None
        (value,), goes_on = v.args, not free.isdisjoint(v.axes)
        few = [a for a in v.axes if a.size.is_Integer and a.size <= MOST]
        few = [a for a in few if (goes_on and a not in free) or _is_told_apart(value, a)]
        for axis in few:
            parts = (substitute(value, {axis: Const(n)}) for n in range(int(axis.size)))
            value = reduce(lambda a, b: v.monoid.combine((a,), (b,))[0], parts)
        left = tuple(a for a in v.axes if a not in few)
        return replace(v, args=(value,), axes=left) if left else value

    return rewritten(cluster, put_together)


def _is_told_apart(value: Value, axis: Axis) -> bool:
    """Whether the value is computed in another way at one place along the axis."""
    return any(isinstance(v, Map) and v.fn == "eq" and v.args[0] == Index(axis) for v in walk(value))


def in_halves(cluster: Cluster) -> Cluster:
    """The cluster in parts one behind the other, or in pairs, if it has such: loops skip no lanes then."""
    divided = in_parts(cluster)
    return divided[0] if divided and (not divided[1].in_turn or divided[1].count == 2) else cluster


def is_in_pairs(cluster: Cluster) -> bool:
    """Whether its halves are neighbours."""
    divided = in_parts(cluster)
    return divided is not None and divided[1].count == 2 and (divided[1].in_turn or divided[1].size == ONE)


def stores_as_it_reads(cluster: Cluster) -> bool:
    """Whether its results lie as what it reads does, and without reductions all over the same axes.

    What rows come to lies in any order.
    """
    cluster = in_halves(cluster)
    lanes = {innermost(load) for load in cluster.largest_loads()}
    stored = [Load(s.buffer, s.index) for s in cluster.stores]
    most = max(len(axes_of(load)) for load in cluster.loads()) if cluster.reduces() else len(cluster.free())
    if not cluster.reduces() and len({axes_of(place) for place in stored}) > 1:
        return False
    return all(innermost(place) in lanes for place in stored if len(axes_of(place)) >= most)
