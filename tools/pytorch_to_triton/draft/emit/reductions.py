"""Reductions: within a tile, and carried through a loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pytorch_to_triton.draft.emit import memory
from pytorch_to_triton.draft.emit.memory import padded, right_if_empty
from pytorch_to_triton.draft.emit.names import Name, combination, constant, written
from pytorch_to_triton.draft.ir.functions import Kind
from pytorch_to_triton.draft.ir.monoids import MAX, MIN, PEAK, SUM, identities
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Const,
    Get,
    Load,
    Map,
    Monoid,
    Number,
    Reduce,
    Scan,
    Value,
    Var,
    axes_of,
    kind_of,
    op,
    walk,
)

if TYPE_CHECKING:
    from pytorch_to_triton.draft.emit.printer import Printer

BUILT_IN = {"sum": "tl.sum", "peak": "tl.max"}
WHOLE_NUMBERS = {"sum": "tl.sum", "peak": "tl.max", "max": "tl.max", "min": "tl.min"}
"""Reductions of a tile that need no function of ours: NaN is no whole number."""


def tiled(p: Printer, axes: Iterable[Axis]) -> frozenset[Axis]:
    """Those of the axes that a tile has a dimension for."""
    return frozenset(a for a in axes if p.blocked(a))


# Products ------------------------------------------------------------------------------------------------


def dot_axes(p: Printer, r: Reduce) -> tuple[Value, Value, str, str, str] | None:
    """(a, b, m, k, n) if the tiles of a sum of products are those of a matrix product."""
    match r:
        case Reduce(monoid=m, args=(Map(fn="mul", args=(a, b)),)) if m == SUM and kind_of(r) == "float":
            k = [x.name for x in r.axes if p.blocked(x)]
            ma, nb = ([n for n in p.layout(axes_of(x)) if n not in k] for x in (a, b))
            if len(k) != 1 or len(ma) != 1 or len(nb) != 1 or ma == nb:
                return None
            if not all(k[0] in p.layout(axes_of(x)) for x in (a, b)):
                return None
            if p.schedule.order.index(ma[0]) > p.schedule.order.index(nb[0]):
                a, b, ma, nb = b, a, nb, ma
            return a, b, ma[0], k[0], nb[0]
    return None


def operands(p: Printer, r: Reduce) -> tuple[str, str] | None:
    """The operands of tl.dot."""
    if not (found := dot_axes(p, r)):
        return None
    p.multiplies = True
    a, b, m, k, n = found
    a, b = zero_past_the_end(p, a, b, tiled(p, r.axes))
    p.raw |= {x for x in (a, b) if isinstance(x, Load) and x not in p.env}
    left, right = p.text(a, (m, k)), p.text(b, (k, n))
    # The one that was computed takes the precision of the one that was loaded.
    if b in p.raw and a not in p.raw:
        left = f"({left}).to({right}.dtype)"
    elif a in p.raw and b not in p.raw:
        right = f"({right}).to({left}.dtype)"
    return left, right


def zero_past_the_end(p: Printer, a: Value, b: Value, axes: frozenset[Axis]) -> tuple[Value, Value]:
    """Two factors whose product is 0 in lanes past the end: by their loads' `other`, else by a mask.

    Of two that were computed, such as x + 1 and w + 1, one is masked: a computed one before one that is only
    loaded. Both are where the other may be infinite there, as 0 times that is NaN.
    """
    mask = memory.conjunction(p, p.layout(axes))
    if mask is None:
        return a, b
    masked_a, masked_b = (op("where", mask, x, 0.0, name=getattr(x, "name", None)) for x in (a, b))
    one_masked = [(masked_a, b), (a, masked_b)]
    for left, right in [(a, b), *(reversed(one_masked) if isinstance(a, Load) else one_masked)]:
        product = op("mul", left, right)
        if padded(p, product, axes, 0.0) is product:
            return left, right
    return masked_a, masked_b


# Within a tile -------------------------------------------------------------------------------------------


def at_once(p: Printer, r: Reduce, layout: tuple[str, ...]) -> str:
    """A plain reduction within the tile at hand."""
    assert r.monoid.is_plain, f"{r.monoid.name} carries several values"
    if found := operands(p, r):
        return f"tl.dot({', '.join(found)}, input_precision=PRECISION)"
    axes = tiled(p, r.axes)
    missing = [a for a in r.axes if a not in axes_of(r.args[0])]
    if missing:
        return repeated(p, r, missing)
    identity = identities(r.monoid, kind_of(r))[0]
    value = padded(p, r.args[0], axes, identity)
    if value is r.args[0] and is_kept(p, r):
        value = right_if_empty(p, value, axes, identity)
    inner = p.layout(axes_of(value))
    return collapsed(p, r.monoid, p.text(value, inner), inner, axes, kind_of(r))


def is_kept(p: Printer, r: Reduce) -> bool:
    """Whether it shows in a result that there is where its axes have no element."""
    for store in p.cluster.stores:
        first = walk(store.value, into=lambda v: not isinstance(v, Reduce))
        walked = {a.size for index in store.index for a in axes_of(index)}
        if r in first and not walked.issuperset(a.size for a in r.axes):
            return True
    return False


def repeated(p: Printer, r: Reduce, missing: list[Axis]) -> str:
    """What does not vary: the largest and the smallest is itself, a sum as often as the tile has elements."""
    if r.monoid in (MAX, MIN, PEAK):
        return unvarying(p, r, missing)
    assert r.monoid == SUM, f"{r.monoid.name} of what does not vary"
    counts = []
    for a in missing:
        block = p.walks[a.name].block
        size = p.size(a.size)
        looped = p.walks[a.name].how in ("loop", "unroll")
        if looped and not block:  # one element at a time
            continue
        counts.append(f"tl.minimum({block}, ({size}) - {start(p, a)})" if looped else f"({size})")
    if not counts:
        return unvarying(p, r, missing)
    factor = " * ".join(counts)
    return factor if r.args[0] == Const(1.0) else f"({unvarying(p, r, missing)}) * ({factor})"


def unvarying(p: Printer, r: Reduce, missing: list[Axis]) -> str:
    """The same reduction without the axes along which nothing varies."""
    rest = tuple(a for a in r.axes if a not in missing)
    inner = replace(r, axes=rest) if rest else r.args[0]
    return p.text(inner, p.layout(axes_of(inner)))


def collapsed(
    p: Printer, m: Monoid, text: str, layout: tuple[str, ...], axes: frozenset[Axis], kind: Kind
) -> str:
    """A tile reduced along the axes, the last ones first."""
    names = {a.name for a in axes}
    known = BUILT_IN if kind == "float" else WHOLE_NUMBERS
    for n in reversed(layout):
        if n in names:
            axis = f"axis={layout.index(n)}"
            if m.name in known:
                text = f"{known[m.name]}({text}, {axis})"
            else:
                text = f"tl.reduce({text}, {axis}, combine_fn={p.calling(combination(m))})"
            layout = tuple(x for x in layout if x != n)
    return text


def compound_at_once(p: Printer, r: Reduce) -> None:
    """A reduction that carries several values, within the tile at hand."""
    axes = tiled(p, r.axes)
    args = lifted(p, r)
    layout = p.layout({a for x in args for a in axes_of(x)})
    texts = [spread(p, x, layout) for x in args]
    depth = max(p.depth(x) for x in args)
    collapse_fields(p, r, texts, layout, axes, depth)


def lifted(p: Printer, r: Reduce) -> tuple[Value, ...]:
    """The elements as the monoid carries them, with its identity past the end."""
    kind = kind_of(r.args[0])
    first = padded(p, r.args[0], tiled(p, r.axes), identities(r.monoid, kind)[0])
    return r.monoid.lift(first, *r.args[1:])


def spread(p: Printer, v: Value, layout: tuple[str, ...]) -> str:
    """A tile of the full layout: tl.reduce takes tiles of one shape."""
    text = p.text(v, layout)
    if p.layout(axes_of(v)) == layout:
        return text
    shape = ", ".join(str(p.walks[n].block) for n in layout)
    return f"tl.broadcast_to({text}, [{shape}])"


def collapse_fields(
    p: Printer, r: Reduce, texts: list[str], layout: tuple[str, ...], axes: frozenset[Axis], depth: int
) -> None:
    """Tiles of all fields reduced by the monoid's own function, under names."""
    combine = p.calling(combination(r.monoid))
    names = [field_name(p, r, i) for i in range(len(texts))]
    for n in reversed(layout):
        if n in {a.name for a in axes}:
            axis = layout.index(n)
            layout = tuple(x for x in layout if x != n)
            line = f"{', '.join(names)} = tl.reduce(({', '.join(texts)}), {axis}, {combine})"
            p.scopes[depth].lines.append(line)
            texts = names
    for i, name in enumerate(names):
        p.bound(Get(r, i), Name(name, layout, depth))


def field_name(p: Printer, r: Reduce | Scan, i: int) -> str:
    """What a carried value is called."""
    wanted = [v.name for v in p.cluster.values() if isinstance(v, Get) and v == Get(r, i) and v.name]
    of = getattr(r.args[0], "name", None)
    field = r.monoid.fields[i]
    return p.fresh(wanted[0] if wanted else f"{of}_{field}" if of else field)


# Through a loop ------------------------------------------------------------------------------------------


def start(p: Printer, a: Axis) -> str:
    """Where the loop's tile begins."""
    loops = [n for n, w in p.walks.items() if w.how == "loop" and w.block is not None and n in p.axes]
    return "start" if len(loops) == 1 else f"{a.name}_start"


def filled(p: Printer, layout: tuple[str, ...], value: Number, kind: Kind) -> str:
    """A tile of the identity."""
    dtype = {"float": p.compute, "int": "tl.int64", "bool": "tl.int1"}[kind]
    if not layout:
        return constant(value) if dtype == "tl.float32" else f"tl.full([], {constant(value)}, {dtype})"
    shape = ", ".join(str(p.walks[n].block) for n in layout)
    return (
        f"tl.zeros([{shape}], {dtype})" if value == 0 else f"tl.full([{shape}], {constant(value)}, {dtype})"
    )


def lanes(p: Printer, r: Reduce) -> tuple[str, ...]:
    """The layout that is carried: a product's result; a step's; else each lane of the tile by itself."""
    if r.monoid.is_plain:
        return p.layout(axes_of(r)) if dot_axes(p, r) else p.layout(axes_of(r.args[0]) - _counted(r))
    return p.layout({a for x in r.args for a in axes_of(x)})


def _counted(r: Reduce) -> frozenset[Axis]:
    return frozenset(a for a in r.axes if a not in axes_of(r.args[0]))


def before(p: Printer, r: Reduce, lines: list[str]) -> tuple[Name, ...]:
    """What is carried, with nothing taken yet."""
    names, depth = [], len(p.scopes) - 1
    kinds = [kind_of(r if r.monoid.is_plain else Get(r, i)) for i in range(len(r.monoid.identity))]
    for i, kind in enumerate(kinds):
        identity = identities(r.monoid, kind)[i]
        if r.monoid.is_plain:
            layout = lanes(p, r)
            text = r.name or p.hint(r)
            text = text if not tiled(p, r.axes) or dot_axes(p, r) else f"{text}_acc"
            name = p.fresh(text)
        else:
            layout = p.layout(axes_of(Get(r, i))) if r.monoid.step else lanes(p, r)
            name = field_name(p, r, i) if r.monoid.step else p.fresh(f"{r.monoid.fields[i]}_acc")
        names.append(Name(name, layout, depth))
        p.taken.add(name)
        lines.append(f"{name} = {filled(p, layout, identity, kind)}")
    return tuple(names)


def during(p: Printer, r: Reduce, names: tuple[Name, ...]) -> None:
    """One tile taken in."""
    inner = p.scopes[-1]
    if not r.monoid.is_plain:
        (_step if r.monoid.step else _lane_by_lane)(p, r, names)
        return
    acc = names[0]
    if found := operands(p, r):
        inner.lines.append(f"{acc.text} = tl.dot({', '.join(found)}, {acc.text}, input_precision=PRECISION)")
        return
    kind = kind_of(r)
    value = padded(p, r.args[0], tiled(p, r.axes), identities(r.monoid, kind)[0])
    text = p.text(apart_from(r.monoid, value), acc.layout)
    if _counted(r):
        text = repeated(p, replace(r, axes=tuple(_counted(r))), list(_counted(r)))
    if r.monoid == SUM:
        inner.lines.append(f"{acc.text} += {text}")
        return
    carried = Var(acc.text, kind=kind)
    taken = Var(f"({text})", kind=kind)
    (both,) = r.monoid.combine((carried,), (taken,))
    inner.lines.append(f"{acc.text} = {written(both)}")


def apart_from(outer: Monoid, v: Value) -> Value:
    """What a loop takes in. Triton makes one reduction of both where a loop adds up, say, maxima of tiles as
    they were loaded (a known miscompilation); a sum with 0.0 in between keeps them apart."""
    match v:
        case Reduce(args=(Load() as tile,)) if v.monoid != outer and tile.buffer.dtype in (
            "float32",
            "float64",
        ):
            return replace(v, args=(Map("add", (tile, Const(0.0))),))
    return v


def _lane_by_lane(p: Printer, r: Reduce, names: tuple[Name, ...]) -> None:
    """Each lane keeps its own; a function of the file combines two."""
    combine = p.calling(combination(r.monoid))
    taken = [p.text(x, names[0].layout) for x in lifted(p, r)]
    carried = ", ".join(n.text for n in names)
    p.scopes[-1].lines.append(f"{carried} = {combine}({carried}, {', '.join(taken)})")


def _step(p: Printer, r: Reduce, names: tuple[Name, ...]) -> None:
    """The tile as the monoid's own step takes it."""
    assert r.monoid.step is not None
    inner = p.scopes[-1]
    carry = tuple(Var(n.text, axes_of(Get(r, i))) for i, n in enumerate(names))
    for v, n in zip(carry, names, strict=True):
        p.env[v] = replace(n, depth=len(p.scopes) - 1)
    args = r.args
    if r.monoid.identity[0] == PEAK.identity[0]:
        x = padded(p, args[0], tiled(p, r.axes), PEAK.identity[0])
        if x != args[0] and isinstance(x, Map) and x.args[1] == args[0] and isinstance(args[0], Map):
            # The name goes to what is used.
            x = replace(x, args=(x.args[0], replace(args[0], name=None), x.args[2]), name=args[0].name)
        args = (x, *args[1:])
    steps = r.monoid.step(carry, args, r.axes)
    for x in walk(*(value for _, value in steps), into=lambda x: x not in p.env):
        if isinstance(x, Reduce) and not dot_axes(p, x):
            padded(p, x.args[0], tiled(p, x.axes), identities(x.monoid, kind_of(x))[0])
    for i, value in steps:
        inner.lines.append(f"{names[i].text} = {p.text(value, names[i].layout)}")
    for v in carry:
        del p.env[v]


def after(p: Printer, r: Reduce, names: tuple[Name, ...]) -> None:
    """The result, where the loop has ended."""
    if not r.monoid.is_plain and r.monoid.step:
        for i, n in enumerate(names):
            p.bound(Get(r, i), n)
    elif not r.monoid.is_plain:
        collapse_lanes(p, r, names)
    elif names[0].layout == p.layout(axes_of(r)):
        p.bound(r, names[0])
    else:
        text = collapsed(p, r.monoid, names[0].text, names[0].layout, tiled(p, r.axes), kind_of(r))
        p.defined(r, text, p.layout(axes_of(r)), len(p.scopes) - 1)


def collapse_lanes(p: Printer, r: Reduce, names: tuple[Name, ...]) -> None:
    """What the lanes kept, put together."""
    depth = len(p.scopes) - 1
    axes = tiled(p, r.axes)
    if not axes:
        for i, n in enumerate(names):
            p.bound(Get(r, i), n)
        return
    collapse_fields(p, r, [n.text for n in names], names[0].layout, axes, depth)
