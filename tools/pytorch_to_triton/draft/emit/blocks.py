"""Loops: which reductions and stores share one, and where it ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pytorch_to_triton.draft.emit import memory, reductions
from pytorch_to_triton.draft.emit.names import Name, Scope
from pytorch_to_triton.draft.ir.values import Axis, Get, Index, Load, Reduce, Store, Value, axes_of, walk

if TYPE_CHECKING:
    from pytorch_to_triton.draft.emit.printer import Printer

Goal = Store | Value


def looped(p: Printer, axes: Iterable[Axis]) -> frozenset[str]:
    """Those of the axes that still need a loop."""
    opened = frozenset[str]().union(*(s.axes for s in p.scopes))
    return frozenset(a.name for a in axes if p.walks[a.name].how in ("loop", "unroll")) - opened


def block(p: Printer, goals: Sequence[Goal]) -> None:
    """All goals, each in the first loop that can have it; a loop ends where its result is needed."""
    roots = {g: g.roots if isinstance(g, Store) else (g,) for g in goals}
    items: dict[Store | Reduce, frozenset[str]] = {}
    for v in walk(*(v for r in roots.values() for v in r), into=lambda v: v not in p.env):
        if not isinstance(v, Reduce) or v in p.env or Get(v, 0) in p.env:
            continue
        if (over := looped(p, v.axes)) and not looped(p, axes_of_result(v)):
            items[v] = over
    for g in goals:
        if isinstance(g, Store) and (over := looped(p, {a for v in roots[g] for a in axes_of(v)})):
            items[g] = over
    for (_, over), members in _together(items).items():
        loop(p, over, members)
    for g in goals:
        if isinstance(g, Store) and g not in items:
            memory.store(p, g)


def axes_of_result(r: Reduce) -> frozenset[Axis]:
    """The axes along which any of its fields varies."""
    if r.monoid.is_plain:
        return axes_of(r)
    return frozenset(a for i in range(len(r.monoid.identity)) for a in axes_of(Get(r, i)))


def _together(
    items: dict[Store | Reduce, frozenset[str]],
) -> dict[tuple[int, frozenset[str]], list[Store | Reduce]]:
    """What one loop computes: all that needs the same axes and no result of each other."""
    level: dict[Store | Reduce, int] = {}
    for item in items:
        below = walk(*(item.roots if isinstance(item, Store) else item.args))
        level[item] = max((level[v] + 1 for v in below if isinstance(v, Reduce) and v in level), default=0)
    groups: dict[tuple[int, frozenset[str]], list[Store | Reduce]] = {}
    for item, over in sorted(items.items(), key=lambda pair: level[pair[0]]):
        groups.setdefault((level[item], over), []).append(item)
    return groups


def loop(p: Printer, over: frozenset[str], items: Sequence[Store | Reduce]) -> None:
    """One loop, or several in each other, over some axes."""
    first: list[str] = []
    steps = [(r, reductions.before(p, r, first)) for r in items if isinstance(r, Reduce)]
    outer = len(p.scopes)
    if outer == 1:
        p.loops += 1
    for n in p.walks:
        if n in over:
            _open(p, p.axes[n])
    inside: list[Goal] = []
    for item in items:
        inside += [item] if isinstance(item, Store) else list(item.args)
    block(p, inside)
    for r, names in steps:
        reductions.during(p, r, names)
    while len(p.scopes) > outer:
        _close(p, first if len(p.scopes) == outer + 1 else [])
    for r, names in steps:
        reductions.after(p, r, names)


def _open(p: Printer, a: Axis) -> None:
    walk_ = p.walks[a.name]
    head, block = _bounds(p, a), walk_.block
    p.scopes.append(Scope(axes=frozenset({a.name})))
    depth = len(p.scopes) - 1
    if block is None:
        name = Name(p.fresh(a.name), (), depth)
        p.bound(Index(a), name, f"for {name.text} in {head}:")
    else:
        start = reductions.start(p, a)
        name = Name(p.fresh(a.name), (a.name,), depth)
        p.bound(
            Index(a),
            name,
            f"for {start} in {head}:",
            f"{name.text} = {start} + tl.arange(0, {block})",
        )


def _bounds(p: Printer, a: Axis) -> str:
    """What a loop runs over, as source."""
    walk_, end = p.walks[a.name], p.text(memory.end(p, a.name), ())
    step = [walk_.block] if walk_.block else []
    if walk_.share:
        arguments = [p.text(walk_.share.first(a), ()), end, *step, "num_stages=STAGES"]
        return f"tl.range({', '.join(arguments)})"
    if walk_.how == "unroll":
        return f"tl.static_range({end})"
    return f"range({', '.join(['0', end, *step] if step else [end])})"


def _close(p: Printer, carried: list[str]) -> None:
    scope = p.scopes.pop()
    for v in scope.known:
        p.env.pop(v, None)
        if isinstance(v, Load):
            p.others.pop(v, None)
    head, *body = scope.lines
    p.scopes[-1].lines += [*scope.carried, *carried, head, *(f"    {line}" for line in body or ["pass"])]
