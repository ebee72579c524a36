"""Where a kernel reads and writes: indices, masks and addresses, and what masked lanes hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytorch_to_triton.draft.emit.names import Name, constant
from pytorch_to_triton.draft.emit.pairs import PAIR
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import every, extent, offset, size_of
from pytorch_to_triton.draft.ir.padding import (
    SETTINGS,
    WITHOUT_ELEMENTS,
    Setting,
    can_hold,
    known,
    where_else,
)
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Buffer,
    Const,
    Index,
    Load,
    Map,
    Number,
    Scan,
    Store,
    Value,
    axes_of,
    in_kind,
    kind_of,
    op,
    walk,
)

if TYPE_CHECKING:
    from pytorch_to_triton.draft.emit.printer import Printer


ROUNDING = {"to_half": "float16", "to_bfloat16": "bfloat16", "to_float8": "float8_e4m3fn"}
"""Functions that give what a dtype holds of a number."""


def opened(p: Printer, a: Axis) -> Name:
    """The index along an axis of the grid, or of one that is held whole."""
    walk = p.walks[a.name]
    own = p.pairs.along if a.name == PAIR else a
    assert walk.how in ("grid", "whole"), f"{a.name} is walked in a loop that is not open"
    start = program(p, own)
    if walk.block is None:
        text = start
    elif walk.how == "whole":
        text = f"tl.arange(0, {walk.block})"
    else:
        text = f"{start} * {walk.block} + tl.arange(0, {walk.block})"
    name = Name(a.name if a.name not in p.taken else p.fresh(a.name), (a.name,) if walk.block else (), 0)
    if text == name.text:
        return p.bound(Index(a), name)
    return p.bound(Index(a), name, f"{name.text} = {text}")


def on_grid(p: Printer) -> list[str]:
    """The axes of the grid, in order."""
    return [n for n, w in p.walks.items() if w.how == "grid" and n in p.axes and n != PAIR]


def program(p: Printer, a: Axis) -> str:
    """Which program along an axis of the grid this is."""
    grid = on_grid(p)
    if len(grid) == 1:
        return "tl.program_id(0).to(INDEX)"
    return f"pid_{a.name}" if p.blocked(a) else a.name


def grid_lines(p: Printer) -> list[str]:
    """The one grid dimension taken apart into programs along each axis, the last one fastest."""
    grid = on_grid(p)
    if len(grid) < 2:
        return []
    lines = ["pid = tl.program_id(0).to(INDEX)"]
    counts = {n: f"n_{n}_blocks" for n in grid[1:] if p.walks[n].block}
    lines += [f"{name} = tl.cdiv({p.size(p.axes[n].size)}, {p.walks[n].block})" for n, name in counts.items()]
    if p.schedule.grouped:
        return [*lines, *_grouped(p, grid, counts)]
    return [*lines, *_apart(p, grid, counts, "pid")]


def _apart(p: Printer, grid: Sequence[str], counts: dict[str, str], rest: str) -> Iterator[str]:
    """The program along each axis, of the number of the program along all of them."""
    for n in reversed(grid[1:]):
        count = counts.get(n, f"({p.size(p.axes[n].size)})")
        yield f"{program(p, p.axes[n])} = {rest} % {count}"
        rest = f"{rest} // {count}"
    yield f"{program(p, p.axes[grid[0]])} = {rest}"


def _grouped(p: Printer, grid: Sequence[str], counts: dict[str, str]) -> list[str]:
    """The last two axes in groups, whatever is before them outside."""
    *outer, m, n = grid
    if outer:
        inside = f"n_{m}_blocks * n_{n}_blocks"
        tile, lines = "tile", [f"tile = pid % ({inside})", *_apart(p, outer, counts, f"pid // ({inside})")]
    else:
        size = p.size(p.axes[m].size)
        tile, lines = "pid", [f"n_{m}_blocks = tl.cdiv({size}, {p.walks[m].block})"]
    return [
        *lines,
        "'# Programs that follow each other share blocks of both operands in the cache.'",
        f"group = {tile} // (GROUP_M * n_{n}_blocks)",
        f"group_size = tl.minimum(n_{m}_blocks - group * GROUP_M, GROUP_M)",
        f"pid_{m} = group * GROUP_M + {tile} % (GROUP_M * n_{n}_blocks) % group_size",
        f"pid_{n} = {tile} % (GROUP_M * n_{n}_blocks) // group_size",
    ]


def bounds(p: Printer, layout: Iterable[str]) -> list[Value]:
    """The masks of a tile's dimensions, but for those that always fit."""
    return [
        op("lt", Index(p.axes[n]), end(p, n), name=f"{n}_mask") for n in layout if not _always_inside(p, n)
    ]


def end(p: Printer, n: str) -> Value:
    """Where what is walked of the axis ends."""
    share = p.walks[n].share
    return share.end(p.axes[n]) if share else extent(p.axes[n].size)


def _always_inside(p: Printer, n: str) -> bool:
    """Whether blocks fill the axis: its literal size is a multiple of all of them, and no block is empty."""
    if n == PAIR:
        return _always_inside(p, p.pairs.along.name)
    walk, size = p.walks[n], p.axes[n].size
    if not size.is_Integer or size == 0 or walk.share or walk.block is None:
        return False
    if p.schedule.sized.get(walk.block) == str(size):
        return True
    blocks = {values.get(walk.block, "") for values in p.schedule.launched}
    if not all(b.isdigit() and int(size) % int(b) == 0 for b in blocks):
        return False
    p.filled[walk.block] = int(size)
    return True


def conjunction(
    p: Printer, layout: tuple[str, ...], where: Value | None = None, of: str = ""
) -> Value | None:
    """The mask of an access: inside of the tile's bounds, and where there is something to access."""
    mask = every([*bounds(p, layout), where])
    if mask is not None:
        p.hints.setdefault(mask, "mask" if where is None else f"{of}_mask")
    return mask


def address(p: Printer, buffer: Buffer, index: Sequence[Value], layout: tuple[str, ...]) -> str:
    """The pointer, or a tile of them.

    Where only the mask varies along a dimension of the tile, the pointers are repeated: Triton demands it.
    """
    at = widened(p, offset(index, buffer.shape))
    match at:
        case Map(fn="add", args=(Map(fn="mul", args=(place, _)), _)) if len(layout) > 1:
            _name_place(p, place)
        case _:
            _name_place(p, at)
    text = f"{buffer.name}_ptr" if at == Const(0) else f"{buffer.name}_ptr + {p.text(at, layout)}"
    if p.layout(axes_of(at)) == layout:
        return text
    return f"tl.broadcast_to({text}, [{', '.join(str(p.walks[n].block) for n in layout)}])"


def _name_place(p: Printer, place: Value) -> None:
    """A name for where rows are, which takes divisions to tell."""
    layout = p.layout(axes_of(place))
    divides = any(isinstance(x, Map) and x.fn in ("floordiv", "mod") for x in walk(place))
    if place in p.env or len(layout) != 1 or not divides:
        return
    match place:
        case Map(fn="add", name=None):
            p.hints.setdefault(place, "place")
            p.defined(place, p.text(place, layout), layout, p.depth(place))


def widened(p: Printer, at: Value) -> Value:
    """The offset with all that a stride multiplies as wide as offsets are."""
    new: Value = at
    match at:
        case Map(fn="mul", args=(x, n)) if size_of(n) is not None:
            new = Map("mul", (wide(p, widened(p, x)), n))
        case Map(fn="add" | "sub" as fn, args=(x, y)):
            new = Map(fn, (widened(p, x), widened(p, y)))
    return at if new == at else new  # What stays as it is keeps its name.


def wide(p: Printer, x: Value) -> Value:
    """An index that a stride multiplies, as wide as offsets are: that of the grid is so already."""
    if size_of(x) is not None or isinstance(x, Load) or not axes_of(x):
        return x
    walks = {"grid" if p.walks[a.name].share else p.walks[a.name].how for a in axes_of(x)}
    if "grid" in walks:
        return x
    return Map("as_index" if walks == {"unroll"} else "to_index", (x,))


def loaded(p: Printer, v: Load, layout: tuple[str, ...]) -> Name:
    """The element, or a tile of them, under a name; with the one beside it, where both are one access."""
    pair = p.pairs.loads.get(v, ())
    known = {p.others[x] for x in pair if x in p.others}
    if not pair or layout != p.layout(axes_of(v)) or len(known) > 1 or not p.raw.isdisjoint(pair):
        other = v.other if v.where is not None else p.others.setdefault(v, _harmless(p, v, layout))
        streams = v in p.cluster.largest_loads()
        return p.defined(v, _load(p, v, layout, other, streams=streams), layout, p.depth(v))
    other = known.pop() if known else _harmless(p, v, layout)
    p.others |= dict.fromkeys(pair, other)
    both = Load(v.buffer, p.pairs.both(pair[0]), name=v.name)
    text = _load(p, both, p.layout(axes_of(both)), other, streams=v in p.cluster.largest_loads())
    shape = ", ".join([*(str(p.walks[n].block) for n in layout), "2"])
    depth = p.depth(v)
    for x in pair:
        p.bound(x, Name(p.fresh(x.name or p.hint(x)), layout, depth))
    names = ", ".join(p.env[x].text for x in pair)
    p.scopes[depth].lines.append(f"{names} = tl.split(tl.reshape({text}, [{shape}]))")
    return p.env[v]


def _load(p: Printer, v: Load, layout: tuple[str, ...], other: Number | None, *, streams: bool) -> str:
    """The access; `streams`: it reads along all axes of the kernel."""
    parts = [address(p, v.buffer, v.index, layout)]
    mask = conjunction(p, layout, v.where, v.buffer.name)
    if mask is not None:
        parts.append(f"mask={p.text(mask, layout)}")
        if other is not None:
            parts.append(f"other={constant(in_kind(other, kind_of(v)))}")
    if p.schedule.streams and streams:
        parts.append('eviction_policy="evict_first"')
    text = f"tl.load({', '.join(parts)})"
    is_so = kind_of(v) != "float" or v in p.raw or f"tl.{p.dtype_of(v.buffer)}" == p.compute
    return text if is_so else f"{text}.to({p.compute})"


def _harmless(p: Printer, v: Load, layout: tuple[str, ...]) -> Number | None:
    """What lanes past the end of a whole row hold where nothing else is asked of them.

    Exact divisions take a slow path for 0: a quarter of a row's lanes would, and all warps wait for theirs.
    """
    return 1.0 if v in p.divided and any(p.walks[n].how == "whole" for n in layout) else None


def store(p: Printer, s: Store) -> None:
    """Write a value where the block is that knows all of it; with the one beside it, where both are one
    access."""
    if pair := p.pairs.stores.get(s):
        p.half_stored ^= {*pair} - {s} if s not in p.half_stored else {s}
        if p.half_stored.isdisjoint(pair):
            _store_both(p, *pair)
        return
    layout = p.layout({a for v in s.roots for a in axes_of(v)})
    value = p.text(stored(p, s), layout)
    if isinstance(s.value, Const) and s.buffer.dtype == "float64":  # A literal alone is float32 to Triton.
        value = f"tl.full([], {value}, tl.float64)"
    mask = conjunction(p, layout, s.where, s.buffer.name)
    parts = [address(p, s.buffer, s.index, layout), value]
    parts += [f"mask={p.text(mask, layout)}"] if mask is not None else []
    p.scopes[-1].lines.append(f"tl.store({', '.join(parts)})")


def _store_both(p: Printer, first: Store, second: Store) -> None:
    index = p.pairs.both(first)
    layout = p.layout({a for i in index for a in axes_of(i)})
    apart = tuple(n for n in p.schedule.order if n in {*layout, p.pairs.along.name} - {PAIR})
    values = ", ".join(p.text(stored(p, s), apart) for s in (first, second))
    shape = ", ".join(str(p.walks[n].block) for n in layout)
    parts = [address(p, first.buffer, index, layout), f"tl.reshape(tl.join({values}), [{shape}])"]
    mask = conjunction(p, layout)
    parts += [f"mask={p.text(mask, layout)}"] if mask is not None else []
    p.scopes[-1].lines.append(f"tl.store({', '.join(parts)})")


def stored(p: Printer, s: Store) -> Value:
    """What is written: a store rounds, so that a value which only it takes need not be."""
    match s.value:
        case Map(fn=fn, args=(x,)) if (
            ROUNDING.get(fn) == p.dtype_of(s.buffer)
            and s.value not in p.operands
            and s.value not in p.rounded
        ):
            return x
    return s.value


# Lanes past the end: what is reduced holds the identity there, by the loads' `other` or by a `tl.where`.


def holds(
    p: Printer,
    v: Value,
    axes: frozenset[Axis],
    assume: Mapping[Load, Number | None],
    settings: Sequence[Setting] = SETTINGS,
) -> Number | None:
    """What lanes past the end of the axes hold, with what is assumed of loads and what is decided already."""
    loads = (x for x in walk(v) if isinstance(x, Load) and x.where is None and axes_of(x) & axes)
    return known(v, {x: assume.get(x, p.others.get(x)) for x in loads}, axes, settings)


def right_if_empty(p: Printer, v: Value, axes: frozenset[Axis], identity: Number) -> Value:
    """A value that is padded, made to hold the identity also where the axes have no element at all.

    A row's largest element is then -inf, and what is computed from it may be NaN.
    """
    symbolic = any(sizes.names(a.size) for a in axes)
    if not symbolic or not axes_of(v) & axes or (mask := conjunction(p, p.layout(axes))) is None:
        return v
    if holds(p, v, axes, {}, WITHOUT_ELEMENTS) == identity:
        return v
    return op("where", mask, v, identity)


def padded(p: Printer, v: Value, axes: frozenset[Axis], identity: Number) -> Value:
    """The value, made to hold the identity in lanes past the end of the axes."""
    if not axes_of(v) & axes or not bounds(p, p.layout(axes)):
        return v
    if holds(p, v, axes, {}) == identity:
        return v
    loads = [
        x
        for x in walk(v, into=lambda x: not isinstance(x, Scan))
        if isinstance(x, Load) and x.where is None and axes_of(x) & axes and x not in p.others
    ]
    whole_numbers = any(kind_of(x) != "float" for x in loads)
    for other in (identity, 0.0, -math.inf, math.inf):
        if (whole_numbers and math.isinf(other)) or not all(can_hold(x.buffer.dtype, other) for x in loads):
            continue
        if loads and holds(p, v, axes, dict.fromkeys(loads, other)) == identity:
            p.others |= dict.fromkeys(loads, other)
            return v
    mask = conjunction(p, p.layout(axes))
    assert mask is not None
    match v:
        case Map(fn="where", args=(inside, x, Const(value=other))) if other == identity:
            return op("where", op("and", mask, inside), x, other, name=v.name)
    return where_else(mask, v, identity)
