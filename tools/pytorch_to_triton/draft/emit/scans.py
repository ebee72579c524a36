"""Running totals, and which part of the printer writes which kind of value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytorch_to_triton.draft.emit import memory, reductions, scans
from pytorch_to_triton.draft.emit.memory import padded
from pytorch_to_triton.draft.emit.names import Name, combination, written
from pytorch_to_triton.draft.emit.printer import Printer, Writer
from pytorch_to_triton.draft.ir.monoids import identities
from pytorch_to_triton.draft.ir.values import Get, Index, Load, Reduce, Scan, Value, Var, axes_of, kind_of

if TYPE_CHECKING:
    from pytorch_to_triton.draft.emit.printer import Printer


BUILT_IN = {"sum": "tl.cumsum", "prod": "tl.cumprod"}


def scanned(p: Printer, v: Value, layout: tuple[str, ...]) -> Name:
    """The running total, or one of its fields."""
    if isinstance(v, Get):
        assert isinstance(v.of, Scan)
        _several(p, v.of, layout)
        return p.env[v]
    assert isinstance(v, Scan)
    (arg,), m, kind = v.args, v.monoid, kind_of(v)
    at = layout.index(v.axis.name)
    value = padded(p, arg, frozenset({v.axis}), identities(m, kind)[0])
    # What is the same all along the axis is still as many elements.
    x = p.text(value, layout) if v.axis in axes_of(value) else reductions.spread(p, value, layout)
    if m.name in BUILT_IN:
        text = f"{BUILT_IN[m.name]}({x}, axis={at})"
    else:
        text = f"tl.associative_scan({x}, {at}, {p.calling(combination(m))})"
    if p.walks[v.axis.name].how != "loop":
        return p.defined(v, text, layout, p.depth(arg))
    (carry,) = _carried(p, v, layout, ("carry",))
    (both,) = m.combine((Var(p.fitted(carry, layout), kind=kind),), (Var(f"({text})", kind=kind),))
    name = p.defined(v, written(both), layout, carry.depth + 1)
    _carry_on(p, v, layout, [carry], [name])
    return name


def _several(p: Printer, v: Scan, layout: tuple[str, ...]) -> None:
    """A scan that carries several values, all fields at once."""
    m = v.monoid
    combine = p.calling(combination(m))
    first = padded(p, v.args[0], frozenset({v.axis}), identities(m, kind_of(v))[0])
    args = m.lift(first, *v.args[1:])
    texts = ", ".join(reductions.spread(p, x, layout) for x in args)
    depth = max(p.depth(x) for x in args)
    names = [Name(reductions.field_name(p, v, i), layout, depth) for i in range(len(args))]
    found = ", ".join(name.text for name in names)
    p.scopes[depth].lines.append(
        f"{found} = tl.associative_scan(({texts}), {layout.index(v.axis.name)}, {combine})"
    )
    for i, name in enumerate(names):
        p.bound(Get(v, i), name)
    if p.walks[v.axis.name].how == "loop":
        carries = _carried(p, v, layout, [f"{field}_carry" for field in m.fields])
        before = ", ".join(p.fitted(carry, layout) for carry in carries)
        p.scopes[depth].lines.append(f"{found} = {combine}({before}, {found})")
        _carry_on(p, v, layout, carries, names)


def _carried(p: Printer, v: Scan, layout: tuple[str, ...], names: Sequence[str]) -> list[Name]:
    """What the loop carries of each field, with nothing taken yet."""
    depth = next(i for i, s in enumerate(p.scopes) if v.axis.name in s.axes)
    kept = tuple(n for n in layout if n != v.axis.name)
    carries = []
    for i, wanted in enumerate(names):
        kind = kind_of(v if v.monoid.is_plain else Get(v, i))
        carry = Name(p.fresh(wanted), kept, depth - 1)
        p.taken.add(carry.text)
        start = reductions.filled(p, kept, identities(v.monoid, kind)[i], kind)
        p.scopes[depth].carried.append(f"{carry.text} = {start}")
        carries.append(carry)
    return carries


def _carry_on(
    p: Printer, v: Scan, layout: tuple[str, ...], carries: Sequence[Name], names: Sequence[Name]
) -> None:
    """The next tile's carries: the last elements of this one's running totals.

    Taken from the running total itself: Triton 3.7 miscompiles `carry += tl.sum(x)` where x is a load and
    the loop reads the carry (triton-lang/triton#11836).
    """
    depth = carries[0].depth + 1
    last = Name(p.fresh("is_last"), (v.axis.name,), depth)
    start = reductions.start(p, v.axis)
    position = p.named(Index(v.axis)).text
    p.scopes[depth].lines.append(f"{last.text} = {position} == {start} + {p.walks[v.axis.name].block} - 1")
    for i, (carry, name) in enumerate(zip(carries, names, strict=True)):
        zero = "0.0" if kind_of(v if v.monoid.is_plain else Get(v, i)) == "float" else "0"
        chosen = f"tl.where({p.fitted(last, layout)}, {name.text}, {zero})"
        p.scopes[depth].lines.append(f"{carry.text} = tl.sum({chosen}, axis={layout.index(v.axis.name)})")


Layout = tuple[str, ...]


def _field(p: Printer, v: Get, layout: Layout) -> Name:
    if isinstance(v.of, Scan):
        return scans.scanned(p, v, layout)
    reductions.compound_at_once(p, v.of)
    return p.env[v]


WRITERS: Mapping[type[Value], Writer] = {
    Index: lambda p, v, layout: memory.opened(p, v.axis),
    Load: memory.loaded,
    Reduce: lambda p, v, layout: p.defined(v, reductions.at_once(p, v, layout), layout, p.depth(v)),
    Get: _field,
    Scan: scans.scanned,
}
