"""Images read at the places that a grid gives, as torch.nn.functional.grid_sample has them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial, reduce

from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Const, Value, op
from pytorch_to_triton.draft.lower.formulas import where
from pytorch_to_triton.draft.lower.gathers import apart
from pytorch_to_triton.draft.lower.row import Context, Refused, as_kind, row
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position
from pytorch_to_triton.draft.lower.windows import LETTERS

BILINEAR, NEAREST = 0, 1
ZEROS, BORDER, REFLECTION = 0, 1, 2
Corner = tuple[Value, Value]
"""A place along one dimension, as a float, and its share of the output."""


@row("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sampler(
    ctx: Context, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    if interpolation_mode not in (BILINEAR, NEAREST):
        raise Refused("it interpolates by cubic curves")
    x = apart(ctx, input, grid.dims)
    batch, *out, _ = grid.dims
    letters, spatial = LETTERS[len(out)], x.shape[2:]
    corners: list[Sequence[Corner]] = []
    for at, (letter, size) in enumerate(zip(letters, spatial, strict=True)):
        # The grid's last dimension begins with the innermost dimension of the image.
        given = grid.at(*map(position, (batch, *out)), Const(len(out) - 1 - at))
        place = _unnormalised(given, size, align_corners=align_corners)
        place = _padded(place, size, padding_mode, align_corners=align_corners)
        corners.append(_corners(place, letter, interpolation_mode))
    shares = [_share(x, batch, spatial, corner) for corner in itertools.product(*corners)]
    return ctx.tensor((batch, x.dims[1], *out), reduce(partial(op, "add"), shares))


def _share(x: Tensor, batch: Dim, spatial: Sequence[Size], corner: Sequence[Corner]) -> Value:
    """What one corner gives to an output; nothing where it lies outside of the image."""
    tests = [test for (at, _), n in zip(corner, spatial, strict=True) for test in _bounds(at, n)]
    inside = reduce(partial(op, "and"), tests)
    index = [op("to_int32", at) for at, _ in corner]
    read = x.where((position(batch), position(x.dims[1]), *index), inside, 0.0)
    weight = reduce(partial(op, "mul"), (share for _, share in corner))
    return where(inside, op("mul", as_kind(read, "float"), weight), 0.0)


def _bounds(at: Value, size: Size) -> tuple[Value, Value]:
    return op("ge", at, 0.0), op("lt", at, as_kind(extent(size), "float"))


def _unnormalised(given: Value, size: Size, *, align_corners: bool) -> Value:
    """A coordinate from -1 to 1 as a place along a dimension."""
    along = op("add", as_kind(given, "float"), 1.0)
    if align_corners:
        return op("mul", op("div", along, 2.0), as_kind(extent(size - 1), "float"))
    return op("div", op("sub", op("mul", along, as_kind(extent(size), "float")), 1.0), 2.0)


def _padded(place: Value, size: Size, mode: int, *, align_corners: bool) -> Value:
    """The place that is read in its stead: outside of the image, by the padding's mode."""
    last = as_kind(extent(size - 1), "float")
    if mode == ZEROS:
        return place
    if mode == REFLECTION:
        place = _reflected(place, size, align_corners=align_corners)
    # A NaN is no place: the first.
    return op("smaller", op("larger", place, 0.0), last)


def _reflected(place: Value, size: Size, *, align_corners: bool) -> Value:
    """The place mirrored at both edges: at the outermost centres, or half an element beyond them."""
    low = 0.0 if align_corners else -0.5
    span = as_kind(extent(size - 1 if align_corners else size), "float")
    beyond = op("abs", op("sub", place, low))
    rest = op("fmod", beyond, span)
    turns = op("floor", op("div", beyond, span))
    back = op("eq", op("fmod", turns, 2.0), 0.0)
    mirrored = where(back, op("add", rest, low), op("add", op("sub", span, rest), low))
    return where(op("eq", span, 0.0), 0.0, mirrored)


def _corners(place: Value, letter: str, mode: int) -> Sequence[Corner]:
    """The places that are read along one dimension."""
    if mode == NEAREST:
        return ((op("round", place, name=f"i{letter}"), Const(1.0)),)
    before = op("floor", place, name=f"i{letter}")
    share = op("sub", place, before, name=f"share_{letter}")
    return (before, op("sub", 1.0, share)), (op("add", before, 1.0), share)
