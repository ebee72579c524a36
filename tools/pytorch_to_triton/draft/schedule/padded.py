"""Products of tensors whose rows begin anywhere: copies whose rows begin where wide loads may.

Loads of a single element each leave the multiplying units waiting: a float32 product of 8,205 x 2,949 by
2,949 x 5,921 takes 27.0 ms by itself, and 4.5 ms with both copies, on an H200.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.indices import every, extent
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.rewriting import rewrite, substitute
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Axis,
    Buffer,
    Cluster,
    Index,
    Load,
    Map,
    Reduce,
    Store,
    Value,
    axes_in_order,
    axes_of,
    op,
)
from pytorch_to_triton.draft.lower.tensor import guarded, limited
from pytorch_to_triton.draft.schedule.axes import innermost
from pytorch_to_triton.draft.schedule.blocks import WIDEST, item_bytes

LOAD_BYTES = 16
"""Of the widest load."""
RESULT = Argument("product", "")
"""Stands for the product while what is computed of it is kept within bounds."""


def padded(cluster: Cluster) -> tuple[str, tuple[Cluster, ...], Cluster] | None:
    """Where a row begins anywhere, as Python; clusters that copy operands, and the product of the copies.

    None where that is nowhere so, or an operand is more than a tensor's element.
    """
    (r,) = cluster.reduces()
    assert isinstance(r.args[0], Map)
    operands = r.args[0].args
    if not all(isinstance(x, Load) and x.where is None for x in operands):
        return None
    loads = [x for x in operands if isinstance(x, Load)]
    ends = [innermost(x) for x in loads]
    narrow = {a: x for x, a in zip(loads, ends, strict=True) if a is not None and not is_wide(a)}
    where = misaligned(narrow)
    if where is None or None in ends:
        return None
    summed = set(r.axes) & set(narrow)
    wide = {a: Axis(a.name, sizes.ceiling(a.size, WIDEST) * WIDEST) for a in narrow}
    copied = [x for x, a in zip(loads, ends, strict=True) if a in narrow or axes_of(x) & summed]
    copies = {x: copy_of(x, last, wide) for x, last in zip(loads, ends, strict=True) if x in copied and last}
    terms = op("mul", *(copies[x][1] if x in copies else substitute(x, indices(wide)) for x in loads))
    product = Reduce(SUM, (terms,), tuple(wide.get(a, a) for a in r.axes), name=r.name)
    whole = replace(cluster, stores=tuple(bounded(s, r, product, wide) for s in cluster.stores))
    return where, tuple(copy for copy, _ in copies.values()), whole


def is_wide(axis: Axis) -> bool:
    """Whether the axis has a multiple of WIDEST elements, whatever its size."""
    return sizes.divides(sizes.size(WIDEST), axis.size)


def misaligned(narrow: dict[Axis, Load]) -> str | None:
    """Where not all rows along one of the axes begin at a multiple of LOAD_BYTES; None: nowhere."""
    found: dict[str, None] = {}
    for axis, load in narrow.items():
        text, each = sizes.text(axis.size), LOAD_BYTES // item_bytes(load.buffer)
        if axis.size.is_Integer and int(axis.size) % each:
            return ""
        if not axis.size.is_Integer:
            found[f"{text if text.isidentifier() else f'({text})'} % {each} != 0"] = None
    return f"({' or '.join(found)})" if found else None


def indices(wide: dict[Axis, Axis]) -> dict[Axis, Value]:
    """The place along each longer axis, for that along the axis."""
    return {axis: Index(longer) for axis, longer in wide.items()}


def copy_of(x: Load, last: Axis, wide: dict[Axis, Axis]) -> tuple[Cluster, Load]:
    """What copies the operand, 0 behind its end along each longer axis, and the copy's element."""
    axes = (*(a for a in axes_in_order(x) if a != last), last)
    longer = tuple(wide.get(a, a) for a in axes)
    buffer = Buffer(
        f"{x.buffer.name}_padded", tuple(a.size for a in longer), x.buffer.dtype, like=x.buffer.name
    )
    inside = every(inside_of(wide, axes))
    moved = substitute(x, indices(wide))
    value = moved if inside is None else limited(moved, inside, 0.0)
    places = tuple(map(Index, longer))
    return Cluster(buffer.name, (Store(buffer, places, value),)), Load(buffer, places, name=x.name)


def inside_of(wide: dict[Axis, Axis], axes: Sequence[Axis]) -> list[Value]:
    """Whether a place along the longer axes is one along the axes as they are, for each."""
    return [op("lt", Index(wide[a]), extent(a.size)) for a in axes if a in wide]


def bounded(store: Store, r: Reduce, product: Reduce, wide: dict[Axis, Axis]) -> Store:
    """The store of what is computed of the product of copies, along the axes as they are without them."""
    axes = [a for a in wide if any(a in axes_of(i) for i in store.index)]
    inside = every(inside_of(wide, axes))

    def outside(value: Value) -> Value:
        rest = rewrite(value, lambda v: RESULT if v == r else None)
        rest = substitute(rest, indices(wide))
        rest = rest if inside is None else guarded(rest, inside)
        return rewrite(rest, lambda v: product if v == RESULT else None)

    moved = store.map(outside)
    return replace(moved, where=every([moved.where, inside]))
