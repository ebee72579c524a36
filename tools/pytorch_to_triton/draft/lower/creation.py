"""Tensors from nothing: constants, ranges, and the places of a triangle as torch.tril_indices gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pytorch_to_triton.draft.ir.indices import minus, plus
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Const, Index, Value, kind_of_dtype, op
from pytorch_to_triton.draft.lower.row import (
    WIDTHS,
    Context,
    Operand,
    Refused,
    RowFunction,
    as_kind,
    number,
    row,
    where,
)
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position

PLACE = "dtype layout device pin_memory"
"""Arguments of all that makes a tensor."""


def filled(ctx: Context, value: Operand) -> Tensor:
    """The result's shape, with one value everywhere."""
    dtype = ctx.dtype
    if dtype not in WIDTHS:
        raise Refused(f"it makes {dtype}")
    kind = kind_of_dtype(dtype)
    fill = Const(bool(value)) if kind == "bool" and isinstance(value, int | float) else number(value)
    return Tensor(ctx.names.dims(ctx.shape), as_kind(fill, kind), dtype)


@row("aten.full.default", arguments=f"size fill_value {PLACE}")
@row("aten.full_like.default", arguments=f"input fill_value {PLACE} memory_format")
def full(ctx: Context, fill_value: Operand) -> Tensor:
    return filled(ctx, fill_value)


@row("aten.empty.memory_format", arguments=f"size {PLACE} memory_format")
def empty(ctx: Context) -> Tensor:
    """Zeros: what the memory holds is nobody's to rely on."""
    return filled(ctx, 0)


@row("aten.scalar_tensor.default", arguments=f"s {PLACE}")
def scalar_tensor(ctx: Context, s: Operand) -> Tensor:
    return filled(ctx, s)


@row("aten.arange.start_step", arguments=f"start end step {PLACE}")
def arange(ctx: Context, start: Operand = 0, step: Operand = 1) -> Tensor:
    dims = ctx.names.dims(ctx.shape, "i")
    kind = kind_of_dtype(ctx.dtype)
    found = as_kind(position(dims[0]), kind)
    if step != 1:
        found = found * as_kind(number(step), kind)
    if start != 0:
        found = found + as_kind(number(start), kind)
    return Tensor(dims, found, ctx.dtype)


def _triangle(compare: str) -> RowFunction:
    """The elements whose row, moved by the diagonal, compares so with their column, else 0."""

    def lowered(ctx: Context, input: Tensor, diagonal: Any = 0) -> Tensor:
        row_at, column = (position(d) for d in input.dims[-2:])
        if isinstance(diagonal, int) and diagonal < 0:
            column = plus(column, Const(-diagonal))
        else:
            row_at = plus(row_at, number(diagonal))
        kept = where(op(compare, row_at, column), input.value, as_kind(Const(False), input.kind))
        return Tensor(input.dims, kept, input.dtype)

    return lowered


row("aten.tril.default")(_triangle("ge"))
row("aten.triu.default")(_triangle("le"))


@row("aten.one_hot.default")
def one_hot(ctx: Context, input: Tensor, num_classes: Any = -1) -> Tensor:
    if num_classes == -1:
        raise Refused("how many classes there are depends on the values")
    dim = ctx.dim("c", ctx.shape[-1])
    found = op("eq", input.value, position(dim))
    return Tensor((*input.dims, dim), as_kind(found, "int"), ctx.dtype)


MOST = 2**21
"""Places whose rows a square root in float32 tells apart."""


@dataclass(frozen=True)
class Triangle:
    """Of a square matrix: what is `distance` or more below its diagonal, or above it."""

    size: int
    distance: int
    upper: bool

    @property
    def rows(self) -> int:
        """How many it has, the shortest of one place."""
        return max(self.size - self.distance, 0)

    @property
    def places(self) -> int:
        return self.rows * (self.rows + 1) // 2

    def place(self, number: Value) -> tuple[Value, Value]:
        """Row and column of the place of that number."""
        if self.upper:
            number = minus(Const(self.places - 1), number)
        along = op("triangle_row", number)
        within = op("triangle_column", number, along)
        if self.upper:
            return minus(Const(self.rows - 1), along), minus(Const(self.size - 1), within)
        return plus(along, Const(self.distance)), within

    def holds(self, i: Value, j: Value) -> Value:
        """Whether row i and column j are a place of it."""
        near, far = (i, j) if self.upper else (j, i)
        return far >= plus(near, Const(self.distance))

    def number(self, i: Value, j: Value) -> Value:
        """The number of a place."""
        if self.upper:
            along, within = minus(Const(self.rows - 1), i), minus(Const(self.size - 1), j)
            return minus(Const(self.places - 1), plus(_places_before(along), within))
        return plus(_places_before(minus(i, Const(self.distance))), j)


def _places_before(along: Value) -> Value:
    """How many places the shorter rows have."""
    return op("floordiv", along * plus(along, Const(1)), 2)


def triangle_of(indices: Sequence[Value], dim: Dim, shape: Sequence[Size]) -> Triangle | None:
    """The triangle whose places these are along `dim`, if they are: of a matrix of that shape."""
    if len(indices) != 2 or len(dim) != 1 or shape[0] != shape[1] or not shape[0].is_Integer:
        return None
    size = int(shape[0])
    for upper in (False, True):
        for distance in range(size):
            triangle = Triangle(size, distance, upper)
            if dim[0].size == triangle.places and triangle.place(Index(dim[0])) == tuple(indices):
                return triangle
    return None


def _places(*, upper: bool) -> RowFunction:
    def lowered(ctx: Context, row: int, col: int, offset: int = 0) -> Tensor:
        distance = offset if upper else -offset
        if row != col or distance < 0:
            raise Refused("its triangle is cut off")
        triangle = Triangle(row, distance, upper)
        if triangle.places > MOST:
            raise Refused(f"its triangle has more than {MOST} places")
        dims = ctx.names.dims(ctx.shape, "i")
        which, number = map(position, dims)
        return Tensor(dims, where(op("eq", which, 0), *triangle.place(number)), ctx.dtype)

    return lowered


for _name, _upper in (("tril", False), ("triu", True)):
    row(f"aten.{_name}_indices.default", arguments=f"row col offset {PLACE}")(_places(upper=_upper))
