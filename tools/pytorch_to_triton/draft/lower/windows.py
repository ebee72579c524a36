"""What one output position sees of its input along a dimension: the windows of convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from pytorch_to_triton.draft.ir.indices import below, every, extent, minus, plus, quotient, times
from pytorch_to_triton.draft.ir.sizes import ONE, FloorDiv, Size, equal
from pytorch_to_triton.draft.ir.sizes import size as sized
from pytorch_to_triton.draft.ir.values import Axis, Number, Value, named, op
from pytorch_to_triton.draft.lower.row import Context, Refused
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
    conditions = [op("ge", at, 0)] if slide.padding > 0 else []
    if slide.beyond > 0 and not below(end, size):
        conditions.append(op("lt", at, extent(size)))
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
    return Window(o, k, plus(start, position(k)), op("lt", position(k), count)), count


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
