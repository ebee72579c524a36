"""Values with other values in them: `rewrite` by a rule, `substitute` for indices; `check` of a cluster."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from pytorch_to_triton.draft.ir.functions import FUNCTIONS
from pytorch_to_triton.draft.ir.indices import bound, extent, is_less, simplified
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import Size, equal, product
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Cluster,
    Const,
    Get,
    Index,
    Load,
    Map,
    Reduce,
    Scan,
    Store,
    Value,
    axes_of,
    bound_axes,
    children,
    in_kind,
    kind_of,
    op,
    walk,
)


def rewrite(v: Value, fn: Callable[[Value], Value | None]) -> Value:
    """Operands first, each value replaced by what `fn` gives for it; None keeps it."""
    done: dict[Value, Value] = {}
    for x in walk(v):
        parts = children(x)
        fresh = tuple(done[c] for c in parts)
        same = all(a is b for a, b in zip(parts, fresh, strict=True))
        new = x if same else rebuilt(x, fresh)
        found = fn(new)
        done[x] = new if found is None else found
    return done[v]


def rebuilt(v: Value, parts: tuple[Value, ...]) -> Value:
    """The value with other operands."""
    match v:
        case Load(index=index):
            where = parts[-1] if v.where is not None else None
            return replace(v, index=parts[: len(index)], where=where)
        case Map() | Reduce():
            return replace(v, args=parts)
        case Scan():
            return replace(v, args=parts[:-1], at=parts[-1])
        case Get():
            (of,) = parts
            assert isinstance(of, Reduce | Scan)
            return replace(v, of=of)
    return v


def rewritten(cluster: Cluster, fn: Callable[[Value], Value | None]) -> Cluster:
    """The cluster with all of its values rewritten."""
    return cluster.map(lambda root: rewrite(root, fn))


def substitute(v: Value, to: Mapping[Axis, Value]) -> Value:
    """Indices replaced; a bound axis that would capture one of the new indices is renamed."""
    to = {a: x for a, x in to.items() if x != Index(a)}
    return _substituted(v, to, {}) if to else v


def _substituted(v: Value, to: Mapping[Axis, Value], done: dict[Value, Value]) -> Value:
    if v in done:
        return done[v]
    if not axes_of(v) & to.keys():
        return v
    new: Value
    match v:
        case Index(axis=axis):
            new = to[axis]
        case Reduce(axes=axes):
            args, renamed = _substituted_inside(v, axes, to, done)
            new = replace(v, args=args, axes=tuple(renamed.get(a, a) for a in axes))
        case Scan(axis=axis):
            args, renamed = _substituted_inside(v, (axis,), to, done)
            new = replace(v, args=args, axis=renamed.get(axis, axis), at=_substituted(v.at, to, done))
        case _:
            new = rebuilt(v, tuple(_substituted(c, to, done) for c in children(v)))
            if isinstance(new, Map) and kind_of(new) == "int":
                new = simplified(new)
            new = _without_lost_term(v, decided(new))
    done[v] = new
    return new


def _without_lost_term(before: Value, new: Value) -> Value:
    """A sum without a term that is 0 at this place; a zero that was written as one stays."""
    match before, new:
        case Map(fn="add", args=(x, _)), Map(args=(Const(value=0.0) as zero, term)) if x != zero:
            return term
        case Map(fn="add", args=(_, x)), Map(args=(term, Const(value=0.0) as zero)) if x != zero:
            return term
    return new


def _substituted_inside(
    v: Reduce | Scan, bound: tuple[Axis, ...], to: Mapping[Axis, Value], done: dict[Value, Value]
) -> tuple[tuple[Value, ...], Mapping[Axis, Axis]]:
    """What is reduced, with indices replaced but for those that are `bound`; and which of these are renamed.

    What is known from outside is not replaced again: time would double with each reduction of reductions.
    """
    inner, renamed = _unbound(to, bound, v.args)
    if not renamed and len(inner) == len(to):
        return tuple(_substituted(a, to, done) for a in v.args), renamed
    moved: dict[Axis, Value] = {old: Index(new) for old, new in renamed.items()}
    return tuple(substitute(substitute(a, moved), inner) for a in v.args), renamed


def rebound(v: Value, to: Mapping[Axis, Value], axes: Mapping[Axis, Sequence[Axis]]) -> Value:
    """Indices replaced everywhere, also where a reduction binds their axes: it binds the new ones then."""

    def binder(v: Value) -> Value | None:
        match v:
            case Reduce(args=args, axes=bound) if set(bound) & axes.keys():
                inner = {a: x for a, x in to.items() if a in bound}
                new = tuple(dict.fromkeys(b for a in bound for b in axes.get(a, (a,))))
                return replace(v, args=tuple(substitute(x, inner) for x in args), axes=new)
            case Scan(args=args, axis=axis) if axis in axes:
                (only,) = axes[axis]
                return replace(v, args=tuple(substitute(x, {axis: to[axis]}) for x in args), axis=only)
        return None

    return substitute(rewrite(v, binder), to)


def decided(v: Value) -> Value:
    """The value, where a condition of literals or indices leaves no choice, or was asked once already."""
    match v:
        case Map(fn=fn, args=(a, b)) if fn in COMPARED and (truth := _compared(fn, a, b)) is not None:
            return Const(truth)
        case Map(
            fn="lt" | "ge", args=(Map(fn="add" | "sub" as way, args=(x, Const() as p)), Const() as q)
        ) if bound(x) is not None:
            return Map(v.fn, (x, Const(q.value - p.value if way == "add" else q.value + p.value)), v.name)
        case Map(fn="and", args=(Const(value=True), x) | (x, Const(value=True))):
            return x
        case Map(fn="and", args=(Const(value=False), _) | (_, Const(value=False))):
            return Const(False)
        case Map(fn="not", args=(Const(value=bool(x)),)):
            return Const(not x)
        case Map(fn="to_int64", args=(Const(value=bool(x)),)):
            return Const(int(x))
        case Map(fn="where", args=(Const(value=inside), x, y)):
            return x if inside else y
        case Map(fn="where", args=(inside, Map(fn="where", args=(again, x, _)), y)) if again == inside:
            return decided(Map("where", (inside, x, y), v.name))
        case Map(fn="to_float", args=(Const(value=x),)):
            return Const(float(x))
        case Map(fn="add", args=(Const(value=0), Map(fn="where", args=(_, _, Const(value=0))) as x)):
            return x
        case Load(where=Const(value=True)):
            return replace(v, where=None)
        case Load(where=Const(value=False)):
            return Const(in_kind(v.other, v.buffer.kind))
    return v


COMPARED = {name: getattr(operator, name) for name in ("lt", "ge", "gt", "le", "eq", "ne")}


def _compared(fn: str, a: Value, b: Value) -> bool | None:
    """What comes of comparing two literals, or two indices by what their ranges make certain."""
    if isinstance(a, Const) and isinstance(b, Const):
        return bool(COMPARED[fn](a.value, b.value))
    less, more = is_less(a, b), is_less(b, a)
    match fn:
        case "lt":
            return less
        case "ge":
            return None if less is None else not less
        case "gt":
            return more
        case "le":
            return None if more is None else not more
    return fn == "ne" if less or more else None


def picked(v: Value) -> Value:
    """A sum of which all terms but that at one place are 0, as that term; of as many ones, as a size."""
    match v:
        case Reduce(monoid=m, args=(Const(value=1, kind="int"),), axes=axes) if m == SUM:
            return extent(product(a.size for a in axes))
        case Reduce(monoid=m, args=(Map(fn="where", args=(hit, x, Const(value=0))),), axes=(axis,)) if (
            m == SUM and axis not in axes_of(x)
        ):
            varying = [test for test in conjuncts(hit) if axis in axes_of(test)]
            others = [test for test in conjuncts(hit) if axis not in axes_of(test)]
            if len(varying) == 1 and (place := place_of(varying[0], axis)):
                tests = (*within(place, axis), *others)
                return op("where", reduce(partial(op, "and"), tests), x, 0.0) if tests else x
    return v


def conjuncts(v: Value) -> tuple[Value, ...]:
    """The conditions that all have to hold."""
    match v:
        case Map(fn="and", args=(a, b)):
            return (*conjuncts(a), *conjuncts(b))
    return (v,)


def place_of(test: Value, axis: Axis) -> Value | None:
    """The one place on the axis where the test may hold, which does not vary along it."""
    match test:
        case Map(fn="eq", args=(a, b)) if Index(axis) in (a, b):
            place = b if a == Index(axis) else a
            return None if axis in axes_of(place) else place
    return None


def within(place: Value, axis: Axis) -> tuple[Value, ...]:
    """The conditions under which the place is on the axis."""
    match place:
        case Index(axis=other) if equal(other.size, axis.size):
            return ()
    return op("ge", place, 0), op("lt", place, extent(axis.size))


def _unbound(
    to: Mapping[Axis, Value], axes: tuple[Axis, ...], args: tuple[Value, ...]
) -> tuple[dict[Axis, Value], dict[Axis, Axis]]:
    """What is replaced below a binder, and what its axes have to be called there."""
    varying = frozenset[Axis]().union(*map(axes_of, args))
    inner = {a: x for a, x in to.items() if a not in axes and a in varying}
    mentioned = frozenset[Axis]().union(*(axes_of(x) for x in inner.values()))
    return inner, {a: Axis(f"{a.name}_", a.size) for a in axes if a in mentioned}


def repeated(value: Value) -> Reduce | None:
    """The innermost reduction that one around it needs once, and would compute for each of its elements.

    It runs over other axes, or the one around it varies along an axis along which it does not.
    """
    outer = [v for v in walk(value) if isinstance(v, Reduce)]
    again = {
        v
        for r in outer
        for v in walk(*r.args)
        if isinstance(v, Reduce) and (v.axes != r.axes or axes_of(r) - axes_of(v))
    }
    return next((v for v in outer if v in again and v.monoid.is_plain), None)


SHORTEST = 4
"""Elements whose reduction is written out, where it is only an operand of another one."""


def written_out(value: Value) -> Value:
    """The same with reductions of a few elements as what is computed of each of them."""

    def terms(v: Value) -> Value | None:
        match v:
            case Reduce(monoid=m, args=(arg,), axes=(axis,)) if (
                m.is_plain and axis.size.is_Integer and 0 < int(axis.size) <= SHORTEST
            ):
                each = [m.lift(substitute(arg, {axis: Const(i)})) for i in range(int(axis.size))]
                return reduce(m.combine, each)[0]
        return None

    return rewrite(value, terms)


def beside(small: Reduce, large: Reduce) -> bool:
    """Whether a reduction costs next to nothing on the way to another one, which varies along more axes."""
    apart = small not in walk(*large.args) and large not in walk(*small.args)
    return set(small.axes) == set(large.axes) and axes_of(small) < axes_of(large) and apart


class Malformed(AssertionError):
    """A cluster that a pass left broken: a defect of the drafter, never of its user."""


def check(cluster: Cluster) -> None:
    """Ranks fit, every axis is bound by a Store, Reduce or Scan, one size for a name, functions are known."""
    found: dict[str, Size] = {}
    for s in cluster.stores:
        _check_store(s)
    for v in cluster.values():
        match v:
            case Load(buffer=buffer, index=index) if len(index) != len(buffer.shape):
                raise Malformed(f"{buffer.name} has {len(buffer.shape)} dimensions and {len(index)} indices")
            case Map(fn=fn) if fn not in FUNCTIONS:
                raise Malformed(f"{fn} is no row of FUNCTIONS")
        for a in (*axes_of(v), *bound_axes(v)):
            if not equal(found.setdefault(a.name, a.size), a.size):
                raise Malformed(f"{a.name} has the sizes {found[a.name]} and {a.size}")


def _check_store(s: Store) -> None:
    if len(s.index) != len(s.buffer.shape):
        raise Malformed(f"{s.buffer.name} has {len(s.buffer.shape)} dimensions and {len(s.index)} indices")
    written = {a for i in s.index for a in axes_of(i)}
    stray = axes_of(s.value) - written
    if stray:
        raise Malformed(
            f"{s.buffer.name} varies along {', '.join(a.name for a in stray)}, which no index has"
        )
