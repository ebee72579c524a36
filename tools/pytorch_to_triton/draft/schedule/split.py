"""A long reduction as two kernels: partial results of chunks, then the rest from those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import extent, minus, plus, times
from pytorch_to_triton.draft.ir.monoids import MERGES, SUM, WEIGHTED_SOFTMAX, WELFORD, identities
from pytorch_to_triton.draft.ir.rewriting import decided, rewritten, substitute
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Buffer,
    Cluster,
    Const,
    Get,
    Index,
    Load,
    Reduce,
    Scan,
    Store,
    Value,
    axes_in_order,
    axes_of,
    kind_of,
    named,
    op,
    walk,
)
from pytorch_to_triton.draft.lower.tensor import guarded, limited
from pytorch_to_triton.draft.schedule.schedule import Rewrite, Share

Kernels = tuple[Cluster, Cluster]


def _dtype(cluster: Cluster, v: Value) -> str:
    """In which dtype a partial result is kept."""
    buffers = {x.buffer for x in cluster.loads()} | {s.buffer for s in cluster.stores}
    double = any(b.dtype == "float64" for b in buffers)
    return {"float": "float64" if double else "float32", "int": "int64", "bool": "bool"}[kind_of(v)]


def staged(cluster: Cluster) -> tuple[Cluster, ...]:
    """One cluster for each reduction, or all that wait for no other, which stores it; then the rest, by its
    axes."""
    clusters: list[Cluster] = []
    number = 0
    while found := cluster.reduces():
        if len(cluster.stores) == 1 and cluster.stores[0].value in (found[0], Get(found[0], 1)):
            break
        kept: list[tuple[Store, Load]] = []
        for r in _at_once(found):
            kept += _stored(cluster, r, number)
            number += 1
        stores = tuple(store for store, _ in kept)
        clusters.append(Cluster(f"{cluster.name}_{stores[0].buffer.name}", stores))
        cluster = rewritten(cluster, {store.value: load for store, load in kept}.get)
    return (*clusters, *_by_axes(cluster))


def _at_once(reduces: Sequence[Reduce]) -> list[Reduce]:
    """The first, and those beside it that run over the same axes and are kept along the same."""
    first, *others = reduces
    free = [r for r in others if not any(isinstance(v, Reduce) for v in walk(*r.args))]
    alike = [r for r in free if r.axes == first.axes and _kept(r) == _kept(first)]
    return [first, *(r for r in alike if r.monoid.is_plain and first.monoid.is_plain)]


def _by_axes(cluster: Cluster) -> list[Cluster]:
    """Stores that do not run over the same axes, apart: each program would write the smaller ones again."""
    found: dict[frozenset[Axis], list[Store]] = {}
    for store in cluster.stores:
        found.setdefault(frozenset().union(*map(axes_of, store.index)), []).append(store)
    return [replace(cluster, stores=tuple(stores)) for stores in found.values()]


def _kept(r: Reduce) -> tuple[Axis, ...]:
    args = [a for x in r.args for a in axes_in_order(x)]
    return tuple(dict.fromkeys(a for a in args if a not in r.axes))


def _stored(cluster: Cluster, r: Reduce, number: int) -> Iterator[tuple[Store, Load]]:
    """What of the reduction is read, each field by itself."""
    fields = [r] if r.monoid.is_plain else [v for v in cluster.values() if isinstance(v, Get) and v.of == r]
    for v in fields:
        what = r.monoid.fields[v.part] if isinstance(v, Get) else r.monoid.name
        # Never a name that `run` has: steps and their reductions may be called alike.
        yield _through_memory(cluster, f"{cluster.name}_{v.name or what}_{number}", _kept(r), v)


def _through_memory(cluster: Cluster, name: str, axes: Sequence[Axis], value: Value) -> tuple[Store, Load]:
    """The value of a cluster stored along axes, and as it is read there."""
    buffer = Buffer(name, tuple(a.size for a in axes), _dtype(cluster, value))
    index = tuple(map(Index, axes))
    return Store(buffer, index, value), Load(buffer, index, name=name)


def split(cluster: Cluster, over: Axis, chunk: int) -> Kernels:
    """Partial results of chunks of `chunk` elements along `over`; then those of all chunks.

    Every reduction of the cluster is over that one axis, and none is inside another. What is stored along
    that axis is stored chunk by chunk.
    """
    length = sizes.size(chunk)
    parts = sizes.FloorDiv(over.size + length - 1, length)
    part, i = Axis("part", parts), Axis("i", length)
    at = plus(times(Index(part), length), Index(i))
    at = named(over.name, at)
    inside = (
        None if sizes.equal(parts * length, over.size) else op("lt", at, extent(over.size), name="inside")
    )
    along = [s for s in cluster.stores if _varies(s, {over})]
    stores = [_bounded(s.map(lambda v: substitute(v, {over: at})), inside) for s in along]
    gathered: dict[Value, Value] = {}
    for number, r in enumerate(cluster.reduces()):
        read = [v for v in cluster.values() if isinstance(v, Get) and v.of == r]
        chunk_of_r = replace(r, args=tuple(substitute(x, {over: at}) for x in r.args), axes=(i,))
        if r.monoid == WELFORD:
            n = _count(over, part, length, inside)
            fields = _deviations(chunk_of_r, inside, n)
        else:
            fields = _partial_fields(chunk_of_r, inside, {v.part: v.name for v in read})
        loads = []
        for label, value in fields.items():
            name = f"{label}_{number}" if number else label
            store, load = _through_memory(cluster, name, (part, *_kept(r)), value)
            stores.append(store)
            loads.append(load)
        if r.monoid == WELFORD:
            mean, squares = loads
            whole = _of_chunks(mean, squares, n, over, part)
            gathered |= {v: named(v.name, whole[v.part]) for v in read}
        else:
            gathered[r] = Reduce(MERGES.get(r.monoid, r.monoid), tuple(loads), (part,), name=r.name)
    others = replace(cluster, stores=tuple(s for s in cluster.stores if s not in along))
    rest = rewritten(others, gathered.get)
    return (
        Cluster(f"{cluster.name}_partial", tuple(stores)),
        replace(rest, name=f"{cluster.name}_final"),
    )


def _partial_fields(
    partial: Reduce, inside: Value | None, names: Mapping[int, str | None]
) -> dict[str, Value]:
    """What the reduction of a chunk carries; nothing that lies outside is read, or changes it."""
    if inside is not None:
        first, *weights = partial.args
        (identity, *_) = identities(partial.monoid, kind_of(first))
        args = (limited(first, inside, identity), *(guarded(x, inside) for x in weights))
        partial = replace(partial, args=args)
    if partial.monoid.is_plain:
        return {"partial": partial}
    fields = enumerate(partial.monoid.fields)
    return {f"partial_{field}": Get(partial, n, name=names.get(n)) for n, field in fields}


def _count(over: Axis, part: Axis, length: Size, inside: Value | None) -> Value:
    """How many elements a chunk has."""
    behind = minus(extent(over.size), times(Index(part), length))
    count = extent(length) if inside is None else op("smaller", behind, extent(length))
    return named("count", decided(op("to_float", count)))


def _deviations(partial: Reduce, inside: Value | None, n: Value) -> dict[str, Value]:
    """The mean of a chunk's elements, and their squared deviations from it."""
    (x,) = partial.args
    x = x if inside is None else limited(x, inside, 0.0)
    mean = op("div", Reduce(SUM, (x,), partial.axes), n, name="chunk_mean")
    squares = op("square", x - mean)
    counted = squares if inside is None else op("where", inside, squares, 0.0)
    return {"partial_mean": mean, "partial_squares": Reduce(SUM, (counted,), partial.axes)}


def _of_chunks(mean: Load, squares: Load, n: Value, over: Axis, part: Axis) -> Sequence[Value]:
    """The fields of WELFORD for all chunks, whose means deviate from the mean of all by the rest."""
    total = op("to_float", extent(over.size))
    of_all = op("div", Reduce(SUM, (mean * n,), (part,)), total, name="mean")
    apart = n * op("square", mean - of_all)
    return total, of_all, Reduce(SUM, (squares + apart,), (part,))


def in_shares(cluster: Cluster, over: Axis, share: Share, varying: Set[Axis] = frozenset()) -> Kernels:
    """What is stored along one axis, with partial results of each share of it; then the rest from those.

    Every reduction over that axis is a plain one, and none is inside another. Those that are not `varying`
    along these axes are left to the rest.
    """
    along = [s for s in cluster.stores if _varies(s, {over})]
    others = replace(cluster, stores=tuple(s for s in cluster.stores if s not in along))
    partials: list[Store] = []
    gathered: dict[Value, Value] = {}
    for r, label in _labelled(others, over, varying).items():
        (arg,), (identity,) = r.args, identities(r.monoid, kind_of(r))
        partial = replace(r, args=(op("where", share.holds(over), arg, identity),), name=label)
        store, load = _through_memory(cluster, f"partial_{label}", (share.part, *_kept(r)), partial)
        partials.append(store)
        gathered[r] = replace(r, args=(load,), axes=(share.part,), name=label)
    rest = rewritten(others, gathered.get)
    return (
        Cluster(f"{cluster.name}_partial", (*along, *partials)),
        replace(rest, name=f"{cluster.name}_final"),
    )


def by_row(cluster: Cluster, rows: Set[Axis]) -> Kernels:
    """What each row comes to, where it is reduced or stored, then what is reduced over the rows."""
    stores = [s for s in cluster.stores if _varies(s, rows)]
    cluster = replace(cluster, stores=tuple(s for s in cluster.stores if s not in stores))
    loads: dict[Value, Value] = {}
    for r in cluster.reduces():
        if set(r.axes) == rows and any(isinstance(v, Reduce) for v in walk(*r.args)):
            (arg,) = r.args
            name = f"{cluster.name}_{getattr(arg, 'name', None) or 'row'}_{len(stores)}"
            axes = tuple(dict.fromkeys((*r.axes, *axes_in_order(arg))))
            store, load = _through_memory(cluster, name, axes, arg)
            stores.append(store)
            loads[r] = replace(r, args=(load,))
    rest = rewritten(cluster, loads.get)
    return Cluster(f"{cluster.name}_rows", tuple(stores)), replace(rest, name=f"{cluster.name}_total")


def _labelled(cluster: Cluster, over: Axis, varying: Set[Axis]) -> dict[Reduce, str]:
    """The reductions over the axis that are `varying` along others, each called after its first result."""
    found: dict[Reduce, str] = {}
    for store in cluster.stores:
        reduces = (v for v in walk(*store.roots) if isinstance(v, Reduce) and over in v.axes)
        for r in (v for v in reduces if varying <= axes_of(v)):
            found.setdefault(r, fresh(r.name or store.buffer.name, found.values()))
    return found


def _bounded(store: Store, inside: Value | None) -> Store:
    """The store where `inside` alone; nothing outside is read."""
    if inside is None:
        return store
    store = store.map(lambda v: guarded(v, inside))
    return replace(store, where=inside if store.where is None else store.where & inside)


def _varies(store: Store, axes: Set[Axis]) -> bool:
    return any(axes_of(v) & axes for v in store.roots)


def scans_in_chunks(cluster: Cluster, over: Axis, chunk: int) -> tuple[Cluster, Cluster, Cluster]:
    """What each chunk of `chunk` elements along `over` comes to; the running totals of those; then each chunk
    on top of what came before it.

    Every scan of the cluster is along that axis and a plain one, and none is inside another.
    """
    length = sizes.size(chunk)
    part, i = Axis("part", sizes.ceiling(over.size, chunk)), Axis("i", length)
    at = named(over.name, plus(times(Index(part), length), Index(i)))
    inside = op("lt", at, extent(over.size), name="inside")
    totals: list[Store] = []
    running: list[Store] = []
    chunks: dict[Value, Value] = {}
    on_top: dict[Value, Value] = {}
    for number, s in enumerate(cluster.scans()):
        arg, (identity,) = substitute(s.args[0], {over: at}), identities(s.monoid, kind_of(s))
        kept = (part, *(a for a in axes_in_order(s.args[0]) if a != over))
        suffix = f"_{number}" if number else ""
        total = Reduce(s.monoid, (limited(arg, inside, identity),), (i,))
        store, load = _through_memory(cluster, f"partial{suffix}", kept, total)
        totals.append(store)
        summed = Scan(s.monoid, (load,), part, Index(part))
        store, load = _through_memory(cluster, f"running{suffix}", kept, summed)
        running.append(store)
        last = (minus(Index(part), Const(1)), *load.index[1:])
        earlier = replace(load, index=last, where=Index(part) > 0, other=identity)
        chunks[s] = Scan(s.monoid, (arg,), i, Index(i))
        within = Scan(s.monoid, (guarded(arg, inside),), i, Index(i))
        on_top[within] = named(s.name, s.monoid.combine((earlier,), (within,))[0])
    moved = rewritten(cluster, chunks.get).map(lambda root: substitute(root, {over: at}))
    whole = replace(moved, stores=tuple(_bounded(s, inside) for s in moved.stores))
    return (
        Cluster(f"{cluster.name}_partial", tuple(totals)),
        Cluster(f"{cluster.name}_running", tuple(running)),
        rewritten(whole, on_top.get),
    )


def can_split_at_once(cluster: Cluster) -> bool:
    """Whether all reductions can be split in the same two kernels: nothing of them is stored along what they
    run over."""
    axes = {a for r in cluster.reduces() for a in r.axes}
    reducing = (s for s in cluster.stores if any(isinstance(v, Reduce) for v in walk(*s.roots)))
    return can_split(cluster) and not any(_varies(s, axes) for s in reducing)


def can_split(cluster: Cluster) -> bool:
    """Whether each reduction takes its own partial results: its lift takes its fields; none is nested."""
    reduces = cluster.reduces()
    return not cluster.inner_reduces() and all(
        r.monoid.is_plain or r.monoid in (*MERGES, WELFORD) or len(r.args) == len(r.monoid.fields)
        for r in reduces
    )


def at_once(cluster: Cluster, online: Rewrite) -> Cluster:
    """The cluster with statistics in one reduction, by a rewrite, where parts of it can be merged."""
    statistics = online(cluster)
    return cluster if any(r.monoid == WEIGHTED_SOFTMAX for r in statistics.reduces()) else statistics
