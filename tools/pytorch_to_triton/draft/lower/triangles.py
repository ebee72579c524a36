"""The places of a triangle in the order of its rows, as torch.tril_indices gives them, and their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytorch_to_triton.draft.ir.indices import minus, plus
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Const, Index, Value, op
from pytorch_to_triton.draft.lower.formulas import where
from pytorch_to_triton.draft.lower.row import Context, Refused, row
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position

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
        return op("ge", far, plus(near, Const(self.distance)))

    def number(self, i: Value, j: Value) -> Value:
        """The number of a place."""
        if self.upper:
            along, within = minus(Const(self.rows - 1), i), minus(Const(self.size - 1), j)
            return minus(Const(self.places - 1), plus(_places_before(along), within))
        return plus(_places_before(minus(i, Const(self.distance))), j)


def _places_before(along: Value) -> Value:
    """How many places the shorter rows have."""
    return op("floordiv", op("mul", along, plus(along, Const(1))), 2)


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


@row("aten.tril_indices.default", arguments="row col offset dtype layout device pin_memory")
def tril_indices(ctx: Context, row: int, col: int, offset: int = 0) -> Tensor:
    return _places(ctx, row, col, -offset, upper=False)


@row("aten.triu_indices.default", arguments="row col offset dtype layout device pin_memory")
def triu_indices(ctx: Context, row: int, col: int, offset: int = 0) -> Tensor:
    return _places(ctx, row, col, offset, upper=True)


def _places(ctx: Context, row: int, col: int, distance: int, *, upper: bool) -> Tensor:
    if row != col or distance < 0:
        raise Refused("its triangle is cut off")
    triangle = Triangle(row, distance, upper)
    if triangle.places > MOST:
        raise Refused(f"its triangle has more than {MOST} places")
    dims = ctx.names.dims(ctx.shape, "i")
    which, number = map(position, dims)
    rows, columns = triangle.place(number)
    return Tensor(dims, where(op("eq", which, 0), rows, columns), ctx.dtype)
