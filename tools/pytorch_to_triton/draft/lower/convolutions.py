"""Convolutions, forward and transposed: sums over the input channels and the taps of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytorch_to_triton.draft.ir.indices import below, every, extent, minus, plus, quotient, remainder, times
from pytorch_to_triton.draft.ir.monoids import SUM
from pytorch_to_triton.draft.ir.sizes import FloorDiv, Size, divides
from pytorch_to_triton.draft.ir.sizes import size as sized
from pytorch_to_triton.draft.ir.values import Reduce, Value, named, op
from pytorch_to_triton.draft.lower.row import Context, Lowered, row
from pytorch_to_triton.draft.lower.tensor import Dim, Tensor, position
from pytorch_to_triton.draft.lower.windows import (
    LETTERS,
    Numbers,
    Slide,
    Window,
    for_each,
    seen,
    sliding,
    taps,
)


@row("aten.convolution.default")
def convolution(
    ctx: Context,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    transposed: bool,
    output_padding: Numbers,
    groups: int,
) -> Lowered:
    if transposed:
        return _transposed(ctx, input, weight, bias, groups, (stride, padding, output_padding, dilation))
    return _forward(ctx, input, weight, bias, groups, (stride, padding, dilation))


def _forward(
    ctx: Context,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    groups: int,
    options: tuple[Numbers, Numbers, Numbers],
) -> Tensor:
    """sum over c, k of x[n, c, o * stride + k * dilation - padding] * weight[oc, c, k], plus bias[oc]."""
    rank = len(weight) - 2
    numbers = (for_each(n, rank) for n in options)
    channels = Channels.of(ctx, x, groups, FloorDiv(weight.shape[0], sized(groups)), rank)
    along = zip(LETTERS[rank], x.shape[-rank:], ctx.shape[-rank:], weight.shape[2:], *numbers, strict=True)
    windows = [
        sliding(ctx, letter, size, out, Slide(taps, stride, padding, dilation, padding))
        for letter, size, out, taps, stride, padding, dilation in along
    ]
    filters = weight.at(
        position(channels.output), position(channels.inner), *(position(w.taps) for w in windows)
    )
    return channels.summed(ctx, x, filters, windows, bias)


@dataclass(frozen=True)
class Channels:
    """The channels of a convolution, whose groups are an axis of their own."""

    group: Dim
    inner: Dim
    """Input channels of one group."""
    outer: Dim
    """Output channels of one group."""

    @classmethod
    def of(cls, ctx: Context, x: Tensor, groups: int, outer: Size, rank: int) -> Channels:
        """`outer` is the number of output channels of one group, `rank` how many dimensions are spatial."""
        if groups == 1:
            return cls((), x.dims[-rank - 1], ctx.dim("oc", outer))
        inner = FloorDiv(x.shape[-rank - 1], sized(groups))
        hint = "c" if inner == outer == 1 else "g"
        return cls((ctx.axis(hint, sized(groups)),), ctx.dim("c", inner), ctx.dim("oc", outer))

    @property
    def input(self) -> Dim:
        """All input channels."""
        return self.group + self.inner

    @property
    def output(self) -> Dim:
        """All output channels."""
        return self.group + self.outer

    def summed(
        self, ctx: Context, x: Tensor, filters: Value, windows: Sequence[Window], bias: Tensor | None
    ) -> Tensor:
        """The products of what the windows see and the filters, over channels and taps."""
        lead = x.dims[: -len(windows) - 1]
        inputs = seen(x, (*map(position, lead), position(self.input)), windows, 0.0)
        axes = self.inner + taps(windows)
        product = inputs * filters
        total = Reduce(SUM, (product,), axes) if axes else product
        value = total if bias is None else total + bias.at(position(self.output))
        return ctx.tensor((*lead, self.output, *(w.out for w in windows)), value)


def _transposed(
    ctx: Context,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    groups: int,
    options: tuple[Numbers, Numbers, Numbers, Numbers],
) -> Tensor:
    """The same of x spread by the stride; `options` are in the order of a Spread."""
    rank = len(weight) - 2
    channels = Channels.of(ctx, input, groups, weight.shape[1], rank)
    numbers_of_each = (for_each(n, rank) for n in options)
    windows, of_filter = [], []
    for letter, size, out, count, *numbers in zip(
        LETTERS[rank], input.shape[-rank:], ctx.shape[-rank:], weight.shape[2:], *numbers_of_each, strict=True
    ):
        spread = Spread(count, *numbers)
        window, tap = (residues if spread.dilation == 1 else divisible)(ctx, letter, size, out, spread)
        windows.append(window)
        of_filter.append(tap)
    filters = seen(weight, (position(channels.input), position(channels.outer)), of_filter, 0.0)
    return channels.summed(ctx, input, filters, windows, bias)


@dataclass(frozen=True)
class Spread:
    """How a transposed convolution spreads its input along one dimension."""

    taps: Size
    stride: int
    padding: int
    output_padding: int
    dilation: int

    @property
    def reach(self) -> Size:
        """How far a tap is from the first one, at most."""
        return (self.taps - 1) * self.dilation

    @property
    def overruns(self) -> bool:
        """Whether the last output positions may meet inputs after the last one."""
        return not below(self.reach - self.padding + self.output_padding, sized(self.stride - 1))


def residues(ctx: Context, letter: str, size: Size, out: Size, spread: Spread) -> tuple[Window, Window]:
    """The taps that meet an input: every `stride`-th, from one on that the output position says.

    Gives the window over the input and that over the filter.
    """
    step = sized(spread.stride)
    count = FloorDiv(spread.taps + spread.stride - 1, step)
    o = ctx.dim(f"o{letter}", out)
    t = ctx.dim(f"k{letter}" if spread.stride == 1 else f"t{letter}", count)
    padded = plus(position(o), extent(sized(spread.padding)))
    tap = named(f"k{letter}", plus(remainder(padded, step), times(position(t), step)))
    at = named(f"i{letter}", minus(quotient(padded, step), position(t)))
    exists = [] if divides(step, spread.taps) else [tap < extent(spread.taps)]
    starts = [] if below(count - 1, sized(spread.padding // spread.stride)) else [at >= 0]
    ends = [at < extent(size)] if spread.overruns else []
    return Window(o, t, at, every(exists + starts + ends)), Window(o, t, tap, every(exists))


def divisible(ctx: Context, letter: str, size: Size, out: Size, spread: Spread) -> tuple[Window, Window]:
    """All taps, of which those meet an input whose distance the stride divides."""
    o, k = ctx.dim(f"o{letter}", out), ctx.dim(f"k{letter}", spread.taps)
    padded = plus(position(o), extent(sized(spread.padding)))
    distance = minus(padded, times(position(k), sized(spread.dilation)))
    at = named(f"i{letter}", quotient(distance, sized(spread.stride)))
    starts = [] if below(spread.reach, sized(spread.padding)) else [distance >= 0]
    meets = [op("eq", remainder(distance, sized(spread.stride)), 0)] if spread.stride > 1 else []
    ends = [at < extent(size)] if spread.overruns else []
    return Window(o, k, at, every(starts + meets + ends)), Window(o, k, position(k))
