"""Elements that lie side by side in memory, one of each for every place along an axis, as one access: a tile
twice as wide, which is split, or joined, in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, TypeVar

from pytorch_to_triton.draft.ir.indices import offset, plus, times
from pytorch_to_triton.draft.ir.sizes import size
from pytorch_to_triton.draft.ir.values import Axis, Const, Index, Load, Map, Store, Value, axes_of, kind_of
from pytorch_to_triton.draft.schedule.schedule import Schedule, Walk

if TYPE_CHECKING:
    from pytorch_to_triton.draft.ir.values import Cluster

Access = TypeVar("Access", Load, Store)
PAIR = "pair"
"""The axis along both: twice as long as the one along which they are told apart."""


@dataclass(frozen=True)
class Pairs:
    """What a kernel reads and writes two by two."""

    along: Axis
    loads: Mapping[Load, tuple[Load, Load]]
    """Each load -> that of the first element and that of the second."""
    stores: Mapping[Store, tuple[Store, Store]]
    """The same of stores."""

    @property
    def axis(self) -> Axis:
        """The axis along both."""
        return Axis(PAIR, self.along.size * 2)

    def both(self, first: Load | Store) -> tuple[Value, ...]:
        """Where both elements lie, for the index of the first."""
        start = _start(first, self.along)
        assert start is not None
        return (*(Const(0) for _ in first.index[1:]), plus(start, Index(self.axis)))


NONE = Pairs(Axis(PAIR, size(1)), {}, {})


def pairs_of(cluster: Cluster, schedule: Schedule) -> Pairs:
    """The pairs along the axis of the tile's neighbours; NONE where there are none, or a loop walks them."""
    last = schedule.order[-1] if schedule.order else ""
    walk = schedule.walks.get(last, Walk("loop"))
    axes = {a for v in cluster.values() for a in axes_of(v) if a.name == last}
    if walk.how == "loop" or walk.share or not walk.block or not axes or PAIR in schedule.walks:
        return NONE
    (along,) = axes
    loads = _paired((v for v in cluster.loads() if v.where is None), along)
    floats = (s for s in cluster.stores if s.where is None and kind_of(s.value) == "float")
    varied = {s: axes_of(s.value) for s in floats}
    stores = _paired((s for s, found in varied.items() if {*found} >= _places(s)), along)
    return Pairs(along, loads, stores) if loads or stores else NONE


def with_pairs(schedule: Schedule, pairs: Pairs) -> Schedule:
    """The schedule with the axis along both, beside the one along which they are told apart."""
    if pairs is NONE:
        return schedule
    walk = schedule.walks[pairs.along.name]
    walks = {**schedule.walks, PAIR: Walk(walk.how, f"2 * {walk.block}")}
    return replace(schedule, walks=walks, order=(*schedule.order, PAIR))


def _places(store: Store) -> frozenset[Axis]:
    return frozenset[Axis]().union(*map(axes_of, store.index))


def _start(first: Load | Store, along: Axis) -> Value | None:
    """Where the pairs begin of which the access has each first element; None where it has not."""
    place = Index(along)
    match offset(first.index, first.buffer.shape):
        case Map(fn="mul", args=(at, Const(value=2))) if at == place:
            start: Value = Const(0)
        case Map(fn="mul", args=(Map(fn="add", args=(before, at)), Const(value=2))) if at == place:
            start = times(before, size(2))
        case Map(fn="add", args=(before, Map(fn="mul", args=(at, Const(value=2))))) if at == place:
            start = before
        case _:
            return None
    return None if along in axes_of(start) else start


def _paired(found: Iterable[Access], along: Axis) -> dict[Access, tuple[Access, Access]]:
    """The accesses of which another one's element follows, or goes before."""
    pairs: dict[Access, tuple[Access, Access]] = {}
    for one, other in permutations(found, 2):
        if one not in pairs and other not in pairs and _follows(one, other, along):
            pairs[one] = pairs[other] = (one, other)
    return pairs


def _follows(one: Load | Store, other: Load | Store, along: Axis) -> bool:
    """Whether the other's element lies behind the one's, for each place along the axis."""
    if one.buffer != other.buffer or _start(one, along) is None:
        return False
    first, next_ = (offset(v.index, v.buffer.shape) for v in (one, other))
    return next_ == plus(first, Const(1))
