"""Running totals: within a tile, on top of what came before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytorch_to_triton.draft.emit import reductions
from pytorch_to_triton.draft.emit.combine_functions import helper_name
from pytorch_to_triton.draft.emit.names import Name
from pytorch_to_triton.draft.emit.padding import padded
from pytorch_to_triton.draft.ir.monoids import identities
from pytorch_to_triton.draft.ir.values import Index, Scan, Value, Var, kind_of

if TYPE_CHECKING:
    from pytorch_to_triton.draft.emit.printer import Printer

BUILT_IN = {"sum": "tl.cumsum", "prod": "tl.cumprod"}


def scanned(p: Printer, v: Value, layout: tuple[str, ...]) -> Name:
    """The running total, or one of its fields."""
    assert isinstance(v, Scan), f"{v} scans several values"
    (arg,), m, kind = v.args, v.monoid, kind_of(v)
    at = layout.index(v.axis.name)
    x = p.text(padded(p, arg, frozenset({v.axis}), identities(m, kind)[0]), layout)
    if m.name in BUILT_IN:
        text = f"{BUILT_IN[m.name]}({x}, axis={at})"
    else:
        p.helpers[helper_name(m)] = m
        text = f"tl.associative_scan({x}, {at}, {helper_name(m)})"
    if p.walks[v.axis.name].how != "loop":
        return p.defined(v, text, layout, p.depth(arg))
    depth = next(i for i, s in enumerate(p.scopes) if v.axis.name in s.axes)
    kept = tuple(n for n in layout if n != v.axis.name)
    carry = Name(p.fresh("carry"), kept, depth - 1)
    p.taken.add(carry.text)
    p.scopes[depth].carried.append(
        f"{carry.text} = {reductions.filled(p, kept, identities(m, kind)[0], kind)}"
    )
    (both,) = m.combine((Var(p.fitted(carry, layout), kind=kind),), (Var(f"({text})", kind=kind),))
    name = p.defined(v, reductions.combined(p, both), layout, depth)
    # Taken from the running total itself: Triton 3.7 miscompiles `carry += tl.sum(x)` where x is a load and
    # the loop reads the carry (triton-lang/triton#11836).
    last = Name(p.fresh("is_last"), (v.axis.name,), depth)
    start = reductions.start(p, v.axis)
    zero = "0.0" if kind == "float" else "0"
    p.scopes[depth].lines += [
        f"{last.text} = {p.named(Index(v.axis)).text} == {start} + {p.walks[v.axis.name].block} - 1",
        f"{carry.text} = tl.sum(tl.where({p.fitted(last, layout)}, {name.text}, {zero}), axis={at})",
    ]
    return name
