"""What an output position sees of its input along a dimension, and pools: the maximum or the mean of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import sympy

from pytorch_to_triton.draft.ir.indices import below, every, extent, minus, plus, quotient, times
from pytorch_to_triton.draft.ir.monoids import ARGMAX, MAX, SUM
from pytorch_to_triton.draft.ir.sizes import ONE, FloorDiv, Size, equal, product
from pytorch_to_triton.draft.ir.sizes import size as sized
from pytorch_to_triton.draft.ir.values import Axis, Const, Get, Number, Reduce, Value, named, op
from pytorch_to_triton.draft.lower.row import Context, Refused, as_kind, first_of, row
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position

Numbers = int | Sequence[int]
"""One for all dimensions, or one each."""
LETTERS = {1: "w", 2: "hw", 3: "dhw"}
"""Spatial dimensions by how many there are."""


@dataclass(frozen=True)
class Window:
    """One dimension, seen from an output position."""

    out: Dim
    taps: Dim
    at: Value
    """The input's index, of an output position and a tap."""
    inside: Value | None = None
    """Where there is such an input; None: everywhere."""


@dataclass(frozen=True)
class Slide:
    """How a window moves along one dimension."""

    taps: Size
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    beyond: int = 0
    """How many elements after the last one a window may see."""


def sliding(ctx: Context, letter: str, size: Size, out: Size, slide: Slide) -> Window:
    """Output `o` and tap `k` see input `o * stride + k * dilation - padding`."""
    o, k = ctx.dim(f"o{letter}", out), ctx.dim(f"k{letter}", slide.taps)
    from_start = plus(times(position(o), sized(slide.stride)), times(position(k), sized(slide.dilation)))
    at = named(f"i{letter}", minus(from_start, extent(sized(slide.padding))))
    end = (out - 1) * slide.stride + (slide.taps - 1) * slide.dilation - slide.padding + 1
    conditions = [at >= 0] if slide.padding > 0 else []
    if slide.beyond > 0 and not below(end, size):
        conditions.append(at < extent(size))
    return Window(o, k, at, every(conditions))


def outputs(size: Size, slide: Slide) -> Size:
    """How many windows there are; the last one starts before the padding at the end."""
    last = size + slide.padding + slide.beyond - (slide.taps - 1) * slide.dilation - 1
    starts = size + slide.padding - 1
    return FloorDiv(starts if (last - starts).is_positive else last, sized(slide.stride)) + 1


def seen(x: Tensor, lead: Sequence[Value], windows: Sequence[Window], other: Number) -> Value:
    """What the windows see of a tensor whose first dimensions are at `lead`; outside it is `other`."""
    index = [*lead, *(w.at for w in windows)]
    inside = every([w.inside for w in windows])
    return x.at(*index) if inside is None else x.where(index, named("inside", inside), other)


def taps(windows: Sequence[Window]) -> tuple[Axis, ...]:
    """The axes inside of the windows."""
    return tuple(a for w in windows for a in w.taps)


def adaptive(ctx: Context, letter: str, size: Size, out: Size) -> tuple[Window, Value]:
    """`out` windows that cover a dimension, as even as can be, and how many elements each has."""
    each = FloorDiv(size, out)
    if equal(each * out, size):
        o, k = ctx.dim(f"o{letter}", out), ctx.dim(f"k{letter}", each)
        return Window(o, k, plus(times(position(o), each), position(k))), extent(each)
    o, k = ctx.dim(f"o{letter}", out), ctx.dim(f"k{letter}", widest(size, out))
    start = named("start", quotient(times(position(o), size), out))
    end = quotient(plus(times(plus(position(o), extent(ONE)), size), extent(out - 1)), out)
    count = named("count", minus(end, start))
    return Window(o, k, plus(start, position(k)), position(k) < count), count


def widest(size: Size, out: Size) -> Size:
    """How many elements the largest of the adaptive windows has, or a bound of it."""
    if size.is_Integer and out.is_Integer:
        n, m = int(size), int(out)
        return sized(max(-(-(o + 1) * n // m) - o * n // m for o in range(m)))
    return FloorDiv(size + out - 1, out) + 1


def for_each(values: Numbers | Sequence[Size], rank: int) -> list[int]:
    """A number for each dimension: one for all, or one each. Raises Refused for sizes that are not known."""
    given = list(values) if isinstance(values, list | tuple) else [values]
    numbers = [int(n) for n in given if isinstance(n, int) or (isinstance(n, sympy.Expr) and n.is_Integer)]
    if len(numbers) < len(given):
        raise Refused("its window is not of fixed size")
    return numbers * rank if len(numbers) == 1 else numbers


@row("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool_with_indices(
    ctx: Context,
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, ...]:
    moves = slides(input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)
    return largest(input, slid(ctx, input, moves))


max_pool = row("aten.max_pool1d.default", "aten.max_pool2d.default", "aten.max_pool3d.default")(
    first_of(max_pool_with_indices)
)


@row(
    "aten.adaptive_max_pool1d.default", "aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default"
)
def adaptive_max_pool(ctx: Context, input: Tensor, output_size: Sequence[int | Size]) -> tuple[Tensor, ...]:
    return largest(input, [w for w, _ in spread(ctx, input, output_size)])


@row("aten.avg_pool1d.default", arguments="input kernel_size stride padding ceil_mode count_include_pad")
@row("aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(
    ctx: Context,
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    moves = slides(input, kernel_size, stride, padding, 1, ceil_mode=ceil_mode)
    windows = slid(ctx, input, moves)
    if divisor_override is not None:
        return mean(ctx, input, windows, [Const(divisor_override)])
    count = in_padding if count_include_pad else in_image
    lengths = input.shape[-len(moves) :]
    return mean(ctx, input, windows, list(map(count, windows, moves, lengths)))


@row(
    "aten.adaptive_avg_pool1d.default",
    "aten.adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool3d.default",
    "aten._adaptive_avg_pool2d.default",
    "aten._adaptive_avg_pool3d.default",
)
def adaptive_avg_pool(ctx: Context, input: Tensor, output_size: Sequence[int | Size]) -> Tensor:
    found = spread(ctx, input, output_size)
    return mean(ctx, input, [w for w, _ in found], [count for _, count in found])


def slides(
    x: Tensor, kernel_size: Numbers, stride: Numbers, padding: Numbers, dilation: Numbers, *, ceil_mode: bool
) -> list[Slide]:
    """How the window moves along each dimension; without a stride by its own size."""
    rank = len(x) - 2 if isinstance(kernel_size, int) else len(kernel_size)
    options = (for_each(n, rank) for n in (kernel_size, stride or kernel_size, padding, dilation))
    return [
        Slide(sized(k), s, p, d, p + (s - 1 if ceil_mode else 0)) for k, s, p, d in zip(*options, strict=True)
    ]


def slid(ctx: Context, x: Tensor, moves: Sequence[Slide]) -> list[Window]:
    """A window along each of the last dimensions."""
    rank = len(moves)
    found = ctx.shape[-rank:] or [outputs(n, m) for n, m in zip(x.shape[-rank:], moves, strict=True)]
    return [sliding(ctx, *each) for each in zip(LETTERS[rank], x.shape[-rank:], found, moves, strict=True)]


def spread(ctx: Context, x: Tensor, output_size: Sequence[int | Size]) -> list[tuple[Window, Value]]:
    """A window along each of the last dimensions, and its count: as many windows as are asked for."""
    rank = len(output_size)
    wanted = [sized(n) if isinstance(n, int) else n for n in output_size]
    return [adaptive(ctx, *each) for each in zip(LETTERS[rank], x.shape[-rank:], wanted, strict=True)]


def largest(x: Tensor, windows: Sequence[Window]) -> tuple[Tensor, Tensor]:
    """The maxima, and where in the image, counted in memory order, each first stands; of NaN the last."""
    lead, axes = x.dims[: -len(windows)], taps(windows)
    values = seen(x, [*map(position, lead)], windows, lowest(x.dtype))
    place: Value = Const(0)
    for window, size in zip(windows, x.shape[-len(windows) :], strict=True):
        place = plus(times(place, size), window.at)
    inside = every([w.inside for w in windows])
    if inside is not None:
        # Where all are -inf the first that is an element is the maximum: no element stands behind the image.
        place = op("where", inside, place, extent(product(x.shape[-len(windows) :])))
    dims = (*lead, *(w.out for w in windows))
    if not axes:
        return Tensor(dims, values, x.dtype), Tensor(dims, place, "int64")
    place = named("place", place)
    if x.kind == "float":
        # The smallest of negative places is the last place.
        place = op("where", op("is_nan", values), op("neg", place), place)
    at: Value = Get(Reduce(ARGMAX, (values, place), axes), 1)
    at = op("abs", at) if x.kind == "float" else at
    return Tensor(dims, Reduce(MAX, (values,), axes), x.dtype), Tensor(dims, at, "int64")


def lowest(dtype: str) -> Number:
    """What any element is at least."""
    if dtype.startswith("uint"):
        return 0
    return -(2 ** (int(dtype.removeprefix("int")) - 1)) if dtype.startswith("int") else float("-inf")


def mean(ctx: Context, x: Tensor, windows: Sequence[Window], counts: Sequence[Value]) -> Tensor:
    """The sums of the windows by the product of their counts."""
    if x.kind != "float":
        raise Refused("it averages whole numbers")
    lead, axes = x.dims[: -len(windows)], taps(windows)
    values = seen(x, [*map(position, lead)], windows, 0.0)
    total = Reduce(SUM, (values,), axes, name="total") if axes else values
    count = reduce(counted, counts)
    value = total if count == Const(1) else total / as_kind(count, "float")
    return ctx.tensor((*lead, *(w.out for w in windows)), value)


def counted(a: Value, b: Value) -> Value:
    """The product of two counts."""
    match a, b:
        case Const(value=int(x)), Const(value=int(y)):
            return Const(x * y)
    return a * b


def in_padding(window: Window, slide: Slide, size: Size) -> Value:
    """How many elements the window has, those of the padding among them, but none beyond it."""
    if slide.beyond == slide.padding:
        return extent(slide.taps)
    start = times(position(window.out), sized(slide.stride))
    return op("smaller", extent(slide.taps), minus(extent(size + 2 * slide.padding), start))


def in_image(window: Window, slide: Slide, size: Size) -> Value:
    """How many elements of the image the window has."""
    if slide.beyond == 0:
        return extent(slide.taps)
    start = minus(times(position(window.out), sized(slide.stride)), extent(sized(slide.padding)))
    end = op("smaller", plus(start, extent(slide.taps)), extent(size))
    return minus(end, op("larger", start, 0) if slide.padding else start)
