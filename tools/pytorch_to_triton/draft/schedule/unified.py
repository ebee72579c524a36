"""Reductions that run over the same dim, over the same axis."""

import re
from dataclasses import replace

from pytorch_to_triton.draft.ir.rewriting import rewrite, substitute
from pytorch_to_triton.draft.ir.sizes import equal
from pytorch_to_triton.draft.ir.values import Axis, Cluster, Index, Reduce, Value, axes_of


def unified(cluster: Cluster) -> Cluster:
    """The cluster with each reduction over the axes of those before it that are the same dims.

    Axes are the same dim where they are as long and called alike: each input of a function has its own.
    """
    known: list[Axis] = []

    def over_known(v: Value) -> Value | None:
        if not isinstance(v, Reduce):
            return None
        to: dict[Axis, Axis] = {}
        for a in (a for a in v.axes if a not in known):
            taken = {*axes_of(v), *v.axes, *to.values()}
            like = (b for b in known if b not in taken and equal(a.size, b.size) and _dim(a) == _dim(b))
            if (same := next(like, None)) is not None:
                to[a] = same
            else:
                known.append(a)
        args = tuple(substitute(x, {a: Index(b) for a, b in to.items()}) for x in v.args)
        return replace(v, args=args, axes=tuple(to.get(a, a) for a in v.axes))

    return cluster.map(lambda root: rewrite(root, over_known))


def _dim(axis: Axis) -> str:
    """What it is called after: `n` for `n_2`."""
    return re.sub(r"(_\d*)+$", "", axis.name)
