"""Masked lanes that are reduced must hold the identity: by the loads' `other`, or else by a `tl.where`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pytorch_to_triton.draft.emit import memory
from pytorch_to_triton.draft.ir import sizes
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
    Const,
    Load,
    Map,
    Number,
    Scan,
    Value,
    axes_of,
    kind_of,
    op,
    walk,
)

if TYPE_CHECKING:
    from pytorch_to_triton.draft.emit.printer import Printer


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
    if not symbolic or not axes_of(v) & axes or (mask := memory.conjunction(p, p.layout(axes))) is None:
        return v
    if holds(p, v, axes, {}, WITHOUT_ELEMENTS) == identity:
        return v
    return op("where", mask, v, identity)


def padded(p: Printer, v: Value, axes: frozenset[Axis], identity: Number) -> Value:
    """The value, made to hold the identity in lanes past the end of the axes."""
    if not axes_of(v) & axes or not memory.bounds(p, p.layout(axes)):
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
    mask = memory.conjunction(p, p.layout(axes))
    assert mask is not None
    match v:
        case Map(fn="where", args=(inside, x, Const(value=other))) if other == identity:
            return op("where", op("and", mask, inside), x, other, name=v.name)
    return where_else(mask, v, identity)
