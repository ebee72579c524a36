"""A value with an order of dimensions, as an operator sees its operand.

A dimension is one axis, or several that lie behind each other in it: merging dimensions costs nothing, and a
reduction over a merged dimension is one over its axes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.functions import Kind
from pytorch_to_triton.draft.ir.indices import plus, quotient, remainder, size_of, times
from pytorch_to_triton.draft.ir.padding import can_hold, known, where_else
from pytorch_to_triton.draft.ir.rewriting import rewrite, substitute
from pytorch_to_triton.draft.ir.sizes import ONE, Size
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Buffer,
    Const,
    Index,
    Load,
    Map,
    Number,
    Value,
    axes_of,
    in_kind,
    kind_of,
    walk,
)

Dim = tuple[Axis, ...]
"""The axes of one dimension, outer ones first; () for a dimension of size 1."""


@dataclass(frozen=True)
class Tensor:
    """A value and its dimensions."""

    dims: tuple[Dim, ...]
    value: Value
    dtype: str
    """As PyTorch has it."""

    def __len__(self) -> int:
        return len(self.dims)

    @property
    def shape(self) -> tuple[Size, ...]:
        """Sizes of the dimensions."""
        return tuple(sizes.product(a.size for a in d) for d in self.dims)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes in order."""
        return tuple(a for d in self.dims for a in d)

    @property
    def indices(self) -> tuple[Value, ...]:
        """The position along each dimension."""
        return tuple(position(d) for d in self.dims)

    @property
    def kind(self) -> Kind:
        """What kind of value it holds."""
        return kind_of(self.value)

    def at(self, *index: Value) -> Value:
        """The element there: one index a dimension."""
        to: dict[Axis, Value] = {}
        for dim, i in zip(self.dims, index, strict=True):
            to |= positions(dim, i)
        return substitute(self.value, to)

    def where(self, index: Sequence[Value], inside: Value, other: Number) -> Value:
        """The element there where it is `inside`, else `other`; nothing outside is read."""
        return limited(self.at(*index), inside, other)


def guarded(value: Value, inside: Value) -> Value:
    """The value, whose loads read only where `inside`; what does not vary with that is there anyway."""
    varying = axes_of(inside)

    def only_inside(v: Value) -> Value | None:
        if not isinstance(v, Load) or not axes_of(v) & varying:
            return None
        if v.where is None:
            return replace(v, where=inside, other=in_kind(0, v.buffer.kind))
        return replace(v, where=v.where & inside)

    return rewrite(value, only_inside)


def limited(value: Value, inside: Value, other: Number) -> Value:
    """The value where `inside`, else `other`; nothing outside is read."""
    if isinstance(value, Load) and value.where is None and can_hold(value.buffer.dtype, other):
        index = tuple(guarded(i, inside) for i in value.index)
        return replace(value, index=index, where=inside, other=other)
    new = guarded(value, inside)
    loads = (v for v in walk(new) if isinstance(v, Load) and v.where is not None)
    # A load that does not vary with `inside` was not guarded: it gives outside what it gives inside.
    outside = {v: v.other for v in loads if axes_of(v) & axes_of(inside)}
    return new if known(new, outside, frozenset()) == other else where_else(inside, new, other)


def position(dim: Dim) -> Value:
    """The index along a dimension, from those of its axes."""
    found: Value = Const(0)
    for a in dim:
        found = plus(times(found, a.size), Index(a))
    return found


def positions(dim: Dim, index: Value) -> dict[Axis, Value]:
    """The index of each of a dimension's axes, from that along the dimension."""
    found: dict[Axis, Value] = {}
    inner = ONE
    for i, a in reversed(list(enumerate(dim))):
        part = quotient(index, inner)
        found[a] = part if i == 0 else remainder(part, a.size)
        inner = inner * a.size
    return found


def digits(index: Value, size: Size) -> Dim | None:
    """The axes of which an index along a whole dimension is made, outer ones first; None for any other."""
    found: list[Axis] = []
    rest: Value = index
    while True:
        match rest:
            case Index(axis=a):
                found.insert(0, a)
                break
            case Map(fn="add", args=(Map(fn="mul", args=(outer, n)), Index(axis=a))) if size_of(n) == a.size:
                found.insert(0, a)
                rest = outer
            case _:
                return None
    return tuple(found) if sizes.equal(sizes.product(a.size for a in found), size) else None


def along_channels(x: Tensor, rank: int) -> Tensor:
    """One value a channel (or one for all, or one scalar), for a tensor [N, C, ...] of this rank."""
    if not len(x) or rank < 2:
        return x
    return Tensor((x.dims[0], *((),) * (rank - 2)), x.value, x.dtype)


SCHEDULED = frozenset(
    {"row", "col", "channel", "outer", "group", "batch", "head", "query", "key", "k", "d", "e", "i", "part"}
)
"""What schedules call the axes that they make."""


@dataclass
class Names:
    """Axes with names that no other has, nor will have."""

    taken: set[str] = field(default_factory=lambda: set(SCHEDULED))

    def axis(self, hint: str, size: Size) -> Axis:
        """A new axis; a part of `n_2` is called `n_3`, not `n_2_2`."""
        name = fresh(re.sub(r"(_\d+)+$", "", hint), self.taken)
        self.taken.add(name)
        return Axis(name, size)

    def dim(self, hint: str, size: Size) -> Dim:
        """A new axis; none for a size of 1."""
        return () if size == 1 else (self.axis(hint, size),)

    def dims(self, shape: Sequence[Size], hints: Sequence[str] = ()) -> tuple[Dim, ...]:
        """A new axis for each dimension that is not of size 1."""
        found = itertools.chain(hints, LETTERS[len(shape)] if len(shape) < len(LETTERS) else "ijklmnop")
        return tuple(self.dim(_hint(s, h), s) for s, h in zip(shape, found, strict=False))


LETTERS = ("", "n", "mn", "bmn", "nchw", "ncdhw")
"""Names of axes that the dims do not name, by rank."""


def _hint(size: Size, otherwise: str) -> str:
    whole = sizes.in_dims(size)
    return str(whole).lower() if whole.is_Symbol else otherwise


def source(names: Names, name: str, shape: Sequence[Size], dtype: str) -> Tensor:
    """A buffer as an operand."""
    return loaded(Buffer(name, tuple(shape), dtype), names.dims(shape))


def loaded(buffer: Buffer, dims: tuple[Dim, ...]) -> Tensor:
    """A buffer whose dimensions have these axes."""
    return Tensor(dims, Load(buffer, tuple(map(position, dims)), name=buffer.name), buffer.dtype)


def expanded(names: Names, x: Tensor, shape: Sequence[Size]) -> Tensor:
    """The tensor in this shape: it repeats along the dimensions that it lacks."""
    kept: tuple[Dim, ...] = ((),) * (len(shape) - len(x)) + x.dims
    if all(d or n == ONE for d, n in zip(kept, shape, strict=True)):
        return replace(x, dims=kept)
    return replace(x, dims=tuple(d or new for d, new in zip(kept, names.dims(shape), strict=True)))


def broadcast(tensors: Sequence[Tensor]) -> tuple[tuple[Dim, ...], list[Value]]:
    """The dimensions that all have together, by PyTorch's rule, and each tensor's value along them."""
    rank = max(map(len, tensors), default=0)
    padded = [((),) * (rank - len(t)) + t.dims for t in tensors]
    # Of those alike the largest tensor's: along its axes statistics of it were taken, not along a weight's.
    largest = sorted(zip(tensors, padded, strict=True), key=lambda pair: -len(pair[0].axes))
    columns = zip(*(dims for _, dims in largest), strict=True)
    dims = _apart(tuple(max(column, key=len) for column in columns))
    values = []
    for t in tensors:
        mine = dims[rank - len(t) :]
        values.append(t.at(*(Const(0) if not d else position(m) for d, m in zip(t.dims, mine, strict=True))))
    return dims, values


def _apart(dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The dimensions, no axis twice: those of `x[:, None] - x[None, :]` are one axis at first."""
    taken: set[str] = set()

    def only(a: Axis) -> Axis:
        while a.name in taken:
            a = replace(a, name=f"{a.name}_")
        taken.add(a.name)
        return a

    return tuple(tuple(map(only, d)) for d in dims)


def reshaped(names: Names, x: Tensor, shape: Sequence[Size]) -> Tensor:
    """The same elements in the same order in other dimensions."""
    value = x.value
    todo = list(x.axes)
    dims: list[Dim] = []
    for wanted in shape:
        dim: list[Axis] = []
        rest = wanted
        while not sizes.equal(rest, ONE):
            if not todo:
                break
            a = todo.pop(0)
            if sizes.divides(a.size, rest):
                dim.append(a)
                rest = sizes.FloorDiv(rest, a.size)
            elif sizes.divides(rest, a.size):
                inner = sizes.FloorDiv(a.size, rest)
                outer, low = names.axis(a.name, rest), names.axis(a.name, inner)
                value = substitute(value, {a: plus(times(Index(outer), inner), Index(low))})
                dim.append(outer)
                todo.insert(0, low)
                rest = ONE
            else:
                return _reread(names, x, shape)
        if not sizes.equal(rest, ONE):
            return _reread(names, x, shape)
        dims.append(tuple(dim))
    if todo:
        return _reread(names, x, shape)
    return replace(x, dims=tuple(dims), value=value)


def _reread(names: Names, x: Tensor, shape: Sequence[Size]) -> Tensor:
    """Dimensions that do not fall together: each element by its place in memory order."""
    dims = names.dims(shape)
    flat: Value = Const(0)
    for d, s in zip(dims, shape, strict=True):
        flat = plus(times(flat, s), position(d))
    index: list[Value] = []
    for s in reversed(x.shape):
        index.insert(0, remainder(flat, s) if len(index) < len(x) - 1 else flat)
        flat = quotient(flat, s)
    return replace(x, dims=dims, value=x.at(*index))


def is_view(tensor: Tensor) -> bool:
    """Whether it only looks at a buffer: all elements are of it, and where they lie follows from no data."""
    match tensor.value:
        case Load(buffer=buffer, index=index, where=None):
            return buffer.dtype == tensor.dtype and not any(isinstance(v, Load) for v in walk(*index))
    return False
