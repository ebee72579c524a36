"""Reductions over elements and one more behind them: a softmax over scores and a logit joined to them."""

from __future__ import annotations

from pytorch_to_triton.draft.ir.indices import extent, size_of
from pytorch_to_triton.draft.ir.rewriting import decided, rewrite, substitute
from pytorch_to_triton.draft.ir.sizes import Size, equal
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Const, Index, Map, Reduce, Value, axes_of, walk


def without_tails(cluster: Cluster) -> Cluster:
    """The cluster with such a reduction over all but the last element, combined with that.

    So what is stored of the others alone runs over the axis that is reduced. Nothing changes where results
    run over all elements.
    """
    lengths = [a.size for a in cluster.free()]

    def apart(v: Value) -> Value | None:
        match v:
            case Reduce(monoid=m, args=(arg,), axes=(axis,)) if m.is_plain:
                end = _last(arg, axis)
                if end is not None and not any(equal(axis.size, n) for n in lengths):
                    others = Axis(f"{axis.name}_", end)
                    head = substitute(_assumed(arg, axis, end, before=True), {axis: Index(others)})
                    tail = substitute(_assumed(arg, axis, end, before=False), {axis: extent(end)})
                    return m.combine((Reduce(m, (head,), (others,), v.name),), (tail,))[0]
        return None

    def parted(root: Value) -> Value:
        new = rewrite(root, apart)
        if new is root:
            return root
        for axis in axes_of(new):
            new = _assumed(new, axis, axis.size, before=True)
        return new

    return cluster.map(parted)


def _last(arg: Value, axis: Axis) -> Size | None:
    """The last place on the axis, where a condition asks whether an element lies before it."""
    ends = (size_of(v.args[1]) for v in walk(arg) if isinstance(v, Map) and _bound(v, axis))
    return next((n for n in ends if n is not None and equal(n + 1, axis.size)), None)


def _bound(v: Map, axis: Axis) -> bool:
    return v.fn in ("lt", "ge") and v.args[0] == Index(axis)


def _assumed(arg: Value, axis: Axis, end: Size, *, before: bool) -> Value:
    """The value where the element lies before the end, or at it."""

    def known(v: Value) -> Value | None:
        match v:
            case Map(fn="lt" | "ge" as fn, args=(_, n)) if _bound(v, axis):
                size = size_of(n)
                return Const((fn == "lt") is before) if size is not None and equal(size, end) else None
        return decided(v)

    return rewrite(arg, known)
