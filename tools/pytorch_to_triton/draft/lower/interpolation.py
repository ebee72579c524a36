"""Images read between their elements: made larger or smaller, or where a grid says."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import sympy

from pytorch_to_triton.draft.ir.indices import extent, quotient, times
from pytorch_to_triton.draft.ir.sizes import Size, equal, text
from pytorch_to_triton.draft.ir.values import Argument, Const, Value, named, op
from pytorch_to_triton.draft.lower.row import Context, Refused, as_kind, row, where
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position
from pytorch_to_triton.draft.lower.windows import LETTERS

Scales = Sequence[float | None]


@dataclass(frozen=True)
class Place:
    """Where along one dimension an output is read."""

    at: Value
    following: Value | None = None
    """The element after it, if that has a share of the output too."""
    share: Value | None = None
    """How much of the output is the following element's."""


@dataclass(frozen=True)
class Resized:
    """One dimension before and after."""

    letter: str
    size: Size
    out: Size
    scale: float | None
    """How much larger the call says that it gets; None: as the sizes say."""

    @property
    def ratio(self) -> Size:
        """How many outputs an input has."""
        return self.out / self.size if self.scale is None else sympy.Rational(self.scale)

    @property
    def step(self) -> Value:
        """How far the input moves from one output to the next."""
        if self.scale is not None:
            return Const(1.0 / self.scale)
        return self.quotient(self.size, self.out)

    @property
    def step_between_corners(self) -> Value:
        """The same, where the first and the last outputs are the first and the last inputs."""
        return self.quotient(self.size - 1, sympy.Max(self.out - 1, 1))

    def quotient(self, a: Size, b: Size) -> Value:
        """A ratio of sizes as a number, which `run` computes where dims are in it."""
        if a.is_Integer and b.is_Integer:
            return Const(int(a) / int(b))
        return Argument(f"step_{self.letter}", f"({text(a)}) / ({text(b)})")


Placed = Callable[[Value, Resized], Place]


@row("aten.upsample_bilinear2d.default", arguments="input output_size align_corners scales_h scales_w")
@row("aten.upsample_bilinear2d.vec", arguments="input output_size align_corners scale_factors")
@row(
    "aten.upsample_trilinear3d.default",
    arguments="input output_size align_corners scales_d scales_h scales_w",
)
def linear(
    ctx: Context,
    input: Tensor,
    align_corners: bool,
    scale_factors: Scales | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    """Each output on the lines between its neighbours."""
    if input.kind != "float":
        raise Refused("it interpolates between whole numbers")
    scales = scale_factors or (scales_d, scales_h, scales_w)[-len(ctx.shape) + 2 :]
    return resized(ctx, input, scales, between_corners if align_corners else between_centres)


def resized(ctx: Context, x: Tensor, scales: Scales, placed: Placed) -> Tensor:
    """The last dimensions in the result's size, each output read where it is placed."""
    rank = len(scales)
    along = [
        Resized(*each) for each in zip(LETTERS[rank], x.shape[-rank:], ctx.shape[-rank:], scales, strict=True)
    ]
    outs = [ctx.dim(f"o{r.letter}", r.out) for r in along]
    places = [_placed(position(o), r, placed) for o, r in zip(outs, along, strict=True)]
    lead = x.dims[:-rank]
    return ctx.tensor((*lead, *outs), blended(x, [*map(position, lead)], places))


def _placed(out: Value, r: Resized, placed: Placed) -> Place:
    if r.size == 1:
        return Place(Const(0))
    if equal(r.size, r.out) and r.scale in (None, 1.0):
        return Place(out)
    return placed(out, r)


def blended(x: Tensor, index: list[Value], places: Sequence[Place]) -> Value:
    """The elements at the places, by their shares."""
    if not places:
        return x.at(*index)
    place, *rest = places
    here = blended(x, [*index, place.at], rest)
    if place.following is None or place.share is None:
        return here
    there = blended(x, [*index, place.following], rest)
    kept = 1.0 - place.share
    return here * kept + there * place.share


def nearest(out: Value, r: Resized) -> Place:
    """The input at or before the output's position."""
    ratio = r.ratio
    # PyTorch divides in float32, which gives other elements from a ratio of 41 on.
    if ratio.is_Integer and ratio <= 40:
        return Place(quotient(out, ratio))
    if (1 / ratio).is_Integer:
        return Place(times(out, 1 / ratio))
    return Place(whole(r, as_kind(out, "float") * r.step))


def between_corners(out: Value, r: Resized) -> Place:
    """The first and the last outputs are the first and the last inputs."""
    return between(r, op("mul", as_kind(out, "float"), r.step_between_corners, name=f"source_{r.letter}"))


def between_centres(out: Value, r: Resized) -> Place:
    """The centres of the elements are what is scaled; before the first centre all is the first element."""
    centre = (as_kind(out, "float") + 0.5) * r.step
    return between(r, op("larger", centre - 0.5, 0.0, name=f"source_{r.letter}"))


def between(r: Resized, source: Value) -> Place:
    """The two inputs around a position."""
    at = whole(r, source)
    following = op("smaller", at + 1, extent(r.size - 1))
    return Place(at, following, op("sub", source, as_kind(at, "float"), name=f"share_{r.letter}"))


def whole(r: Resized, source: Value) -> Value:
    """The input at or before a position, which rounding may have put after the last one."""
    return named(f"i{r.letter}", op("smaller", op("to_int32", source), extent(r.size - 1)))


@row("aten.upsample_nearest2d.vec", arguments="input output_size scale_factors")
def nearest2d(ctx: Context, input: Tensor, scale_factors: Scales | None) -> Tensor:
    return resized(ctx, input, scale_factors or (None, None), nearest)


BILINEAR, NEAREST, CUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
Corner = tuple[Value, Value]
"""A place along one dimension, as a float, and its share of the output."""


@row("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sampler(
    ctx: Context, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    x = ctx.apart(input, grid.dims)
    batch, *out, _ = grid.dims
    letters, spatial = LETTERS[len(out)], x.shape[2:]
    corners: list[Sequence[Corner]] = []
    for number, (letter, size) in enumerate(zip(letters, spatial, strict=True)):
        # The grid's last dimension begins with the innermost dimension of the image.
        given = grid.at(*map(position, (batch, *out)), Const(len(out) - 1 - number))
        place = _unnormalised(given, size, align_corners=align_corners)
        padded = partial(_padded, size=size, mode=padding_mode, align_corners=align_corners)
        if interpolation_mode == CUBIC:
            corners.append([(padded(at), share) for at, share in _on_curve(place, letter)])
        else:
            corners.append(_corners(padded(place), letter, interpolation_mode))
    # Each place of a curve is moved into the image by itself; a line's second one may lie behind its edge.
    limits = spatial if interpolation_mode != CUBIC or padding_mode == ZEROS else ()
    shares = [_share(x, batch, limits, corner) for corner in itertools.product(*corners)]
    return ctx.tensor((batch, x.dims[1], *out), reduce(operator.add, shares))


def _share(x: Tensor, batch: Dim, limits: Sequence[Size], corner: Sequence[Corner]) -> Value:
    """What one corner gives to an output; nothing where it lies outside of the limits."""
    index = (position(batch), position(x.dims[1]), *(op("to_int32", at) for at, _ in corner))
    weight = reduce(operator.mul, (share for _, share in corner))
    if not limits:
        return as_kind(x.at(*index), "float") * weight
    tests = [test for (at, _), n in zip(corner, limits, strict=True) for test in _bounds(at, n)]
    inside = reduce(operator.and_, tests)
    read = x.where(index, inside, 0.0)
    return where(inside, as_kind(read, "float") * weight, 0.0)


def _bounds(at: Value, size: Size) -> tuple[Value, Value]:
    return at >= 0.0, at < as_kind(extent(size), "float")


def _unnormalised(given: Value, size: Size, *, align_corners: bool) -> Value:
    """A coordinate from -1 to 1 as a place along a dimension."""
    along = as_kind(given, "float") + 1.0
    if align_corners:
        return along / 2.0 * as_kind(extent(size - 1), "float")
    return (along * as_kind(extent(size), "float") - 1.0) / 2.0


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
    beyond = op("abs", place - low)
    rest = op("fmod", beyond, span)
    turns = op("floor", beyond / span)
    back = op("eq", op("fmod", turns, 2.0), 0.0)
    mirrored = where(back, rest + low, span - rest + low)
    return where(op("eq", span, 0.0), 0.0, mirrored)


def _corners(place: Value, letter: str, mode: int) -> Sequence[Corner]:
    """The places that are read along one dimension."""
    if mode == NEAREST:
        return ((op("round", place, name=f"i{letter}"), Const(1.0)),)
    before = op("floor", place, name=f"i{letter}")
    share = op("sub", place, before, name=f"share_{letter}")
    return (before, 1.0 - share), (before + 1.0, share)


BEND = -0.75
"""How steep PyTorch's cubic curves are."""


def _on_curve(place: Value, letter: str) -> Sequence[Corner]:
    """The four places whose elements a cubic curve goes by: two on each side."""
    before = op("floor", place, name=f"i{letter}")
    share = op("sub", place, before, name=f"share_{letter}")
    rest = 1.0 - share
    return (
        (before - 1.0, _of_outer(share + 1.0)),
        (before, _of_inner(share)),
        (before + 1.0, _of_inner(rest)),
        (before + 2.0, _of_outer(rest + 1.0)),
    )


def _of_inner(distance: Value) -> Value:
    """The share of an element up to 1 away."""
    return ((BEND + 2) * distance - (BEND + 3)) * distance * distance + 1.0


def _of_outer(distance: Value) -> Value:
    """The share of an element from 1 to 2 away."""
    return ((BEND * distance - 5 * BEND) * distance + 8 * BEND) * distance - 4 * BEND
