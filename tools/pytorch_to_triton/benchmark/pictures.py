"""Pictures of a benchmark as PNG: the speed-up against the size, and the roofline.

matplotlib is imported when the first is drawn, and no window or pyplot state is involved. Sizes are numbered;
a key beside the plot explains the numbers, so that long names of dims never cover data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_to_triton.benchmark.canvas import (
    INCHES,
    INK,
    LEGEND_CHARACTERS,
    LOOKS,
    PALE,
    PLOT,
    blank,
    fold,
    key,
    looks,
    plain_matplotlib,
    save,
    wrap,
)
from pytorch_to_triton.benchmark.figures import baselines, digits, percent, size_of
from pytorch_to_triton.benchmark.roofline import precision_of, products_in
from pytorch_to_triton.schema.benchmark import KERNEL, Benchmark
from pytorch_to_triton.schema.timing import Ceilings, Timing, TimingTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLOSE = 1.08
"""Sizes whose bytes are nearer than this stand side by side, not where their bytes would put them."""
WIDE_RANGE = 4.0
"""Speed-ups further apart than this stand on a logarithmic axis."""
FEW_DECADES = 2.5
"""On a logarithmic axis: fewer need numbers between the powers of ten."""
LABEL_GAP = 17.0
LABEL_REACH = 28.0
"""Pixels between the numbers of points, and from a point to its number."""


def draw(benchmark: Benchmark, folder: Path) -> tuple[Path, ...]:
    """Write speedup.png and roofline.png, 1200 x 800 pixels, into `folder`, and return those that were drawn.

    There is no speed-up without timings, and no roofline without ceilings or floating-point work.
    """
    compared = [table for table in benchmark.tables if table.of(KERNEL) and baselines(table)]
    working = [table for table in benchmark.tables if intensity(table)]
    drawn = []
    with plain_matplotlib():
        if compared:
            figure = speedup_figure(benchmark, compared)
            drawn.append(save(figure, folder / "speedup.png"))
        if benchmark.ceilings and working:
            figure = roofline_figure(benchmark, benchmark.ceilings, working)
            drawn.append(save(figure, folder / "roofline.png"))
    return tuple(drawn)


def speedup_figure(benchmark: Benchmark, tables: Sequence[TimingTable]) -> Figure:
    """A line a baseline over the sizes; bars where there is one size."""
    if len(tables) == 1:
        return bars_figure(benchmark, tables[0])
    figure, axes = blank(benchmark, "speed-up over each baseline", "above 1 the kernel is faster")
    places_of, by_bytes = positions(tables)
    for label, (colour, marker) in looks(tables).items():
        points = [
            (x, *speedup(kernel, other))
            for x, table in zip(places_of, tables, strict=True)
            if (kernel := table.of(KERNEL)) and (other := table.of(label)) and label != KERNEL
        ]
        if points:
            xs, ys, lows, highs = zip(*points, strict=True)
            below = [y - low for y, low in zip(ys, lows, strict=True)]
            above = [high - y for y, high in zip(ys, highs, strict=True)]
            axes.errorbar(
                xs, ys, yerr=(below, above), label=wrap(f"over {label}", LEGEND_CHARACTERS), color=colour,
                marker=marker, markersize=8, linewidth=2, capsize=4,
            )  # fmt: skip
    axes.axhline(1.0, color=INK, linewidth=1.2, linestyle="--")
    axes.annotate("equal", (1.0, 1.0), (4, 0), xycoords=("axes fraction", "data"),
                  textcoords="offset points", va="center", fontsize=9.5)  # fmt: skip
    axes.set_ylabel("speed-up: baseline's time / kernel's time")
    scale_speedup(axes)
    scale_sizes(axes, places_of, by_bytes=by_bytes)
    key(figure, axes, [f"{size_of(table)} ({megabytes_moved(table)})" for table in tables])
    return figure


def bars_figure(benchmark: Benchmark, table: TimingTable) -> Figure:
    """The times at the one size, the limit marked."""
    figure, axes = blank(benchmark, f"time at {size_of(table)}", "shorter is faster")
    kernel = table.of(KERNEL)
    assert kernel is not None
    shown = sorted(table.timings, key=lambda timing: timing.label != KERNEL)
    colours = looks([table])
    ends = max(timing.high_ms for timing in shown)
    for row, timing in enumerate(shown):
        error = [[timing.median_ms - timing.low_ms], [timing.high_ms - timing.median_ms]]
        colour, _ = colours[timing.label]
        axes.barh(row, timing.median_ms, xerr=error, color=colour, height=0.6, capsize=5, ecolor=INK)
        text = f"{digits(timing.median_ms)} ms"
        if timing is not kernel:
            text += f"\nkernel {timing.median_ms / kernel.median_ms:.2f} times as fast"
        axes.annotate(text, (timing.high_ms, row), (8, 0), textcoords="offset points", va="center")
    if table.limit:
        axes.axvline(table.limit.ms, color=INK, linestyle="--", linewidth=1.2)
        mark = f"limit {digits(table.limit.ms)} ms ({table.limit.binds}-bound)"
        axes.annotate(mark, (table.limit.ms, 1.0), (-4, 6), xycoords=("data", "axes fraction"),
                      textcoords="offset points", fontsize=11)  # fmt: skip
    axes.set_yticks(range(len(shown)), [fold(timing.label) for timing in shown])
    axes.set_xlim(0, 1.45 * ends)
    axes.invert_yaxis()
    axes.set_xlabel("median time in ms, with its 95 % confidence interval")
    axes.set_position((0.17, PLOT[1], 0.80, PLOT[3] - 0.02))
    return figure


def roofline_figure(benchmark: Benchmark, ceilings: Ceilings, tables: Sequence[TimingTable]) -> Figure:
    """Both axes logarithmic: operations a byte against operations a second, under the device's ceilings."""
    figure, axes = blank(benchmark, "roofline", "nearer to the roof is better")
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("arithmetic intensity in FLOP/byte, each input read and each output written once")
    axes.set_ylabel("performance in TFLOP/s")
    roofs = roofs_of(ceilings, tables, tf32=benchmark.precision == precision_of(tf32=True))
    bound_axes(axes, ceilings, roofs, tables)
    draw_roofs(axes, ceilings, roofs)
    for label, (colour, marker) in looks(tables).items():
        points = [(intensity(t), rate(t, timing)) for t in tables if (timing := t.of(label))]
        if points:
            kernel = label == KERNEL
            axes.plot(
                *zip(*points, strict=True), label=wrap(label, LEGEND_CHARACTERS), color=colour,
                marker=marker, linestyle="none", markersize=12 if kernel else 7, markeredgecolor="white",
                zorder=3 if kernel else 4,
            )  # fmt: skip
    if benchmark.verdict == "estimated":
        roof = [(intensity(t), rate_at(t, t.limit.ms)) for t in tables if t.limit]
        axes.plot(*zip(*roof, strict=True), label="limit (estimated)", color=LOOKS[KERNEL][0], marker="o",
                  linestyle="none", markersize=11, markerfacecolor="white")  # fmt: skip
    number_points(axes, [(n, intensity(t), height(t)) for n, t in enumerate(tables, 1) if height(t)])
    key(figure, axes, [f"{size_of(table)}\n{share_reached(table)}" for table in tables])
    return figure


def speedup(kernel: Timing, other: Timing) -> tuple[float, float, float]:
    """The ratio of the medians, and its least and greatest by the confidence intervals."""
    ratio = other.median_ms / kernel.median_ms
    return ratio, other.low_ms / kernel.high_ms, other.high_ms / kernel.low_ms


def positions(tables: Sequence[TimingTable]) -> tuple[list[float], bool]:
    """Where sizes stand along the axis: at their megabytes, or one after another where those are alike."""
    sizes = [table.bytes_moved / 1e6 for table in tables]
    apart = all(a > 0 and b / a > CLOSE for a, b in pairwise(sizes))
    return (sizes, True) if apart else ([float(n) for n in range(1, len(sizes) + 1)], False)


def megabytes_moved(table: TimingTable) -> str:
    megabytes = table.bytes_moved / 1e6
    return f"{megabytes:.3g} MB" if megabytes < 1000 else f"{megabytes / 1000:.3g} GB"


def scale_speedup(axes: Axes) -> None:
    """Room above and below; a wide range on a logarithmic axis with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    data = axes.dataLim.intervaly
    low, high = min(float(data[0]), 1.0), max(float(data[1]), 1.0)
    if high / low > WIDE_RANGE:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(0.8 * low, 1.25 * high)
    else:
        room = max(0.12 * (high - low), 0.02)
        axes.set_ylim(low - room, high + room)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g} ×"))


def scale_sizes(axes: Axes, places_of: Sequence[float], *, by_bytes: bool) -> None:
    """Numbers of the sizes above the plot, megabytes below it where the sizes stand by them."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    if by_bytes:
        axes.set_xscale("log")
        axes.set_xlim(places_of[0] / 1.5, places_of[-1] * 1.5)
        axes.set_xlabel("bytes moved at least, in MB (logarithmic)")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda megabytes, _: f"{megabytes:,g}"))
        axes.xaxis.set_minor_locator(NullLocator())
        if places_of[-1] / places_of[0] < 100:
            axes.set_xticks(places_of, [f"{x:,.0f}" if x >= 100 else f"{x:.3g}" for x in places_of])
    else:
        axes.set_xlim(places_of[0] - 0.5, places_of[-1] + 0.5)
        axes.set_xticks(places_of, [f"{place:g}" for place in places_of])
        axes.set_xlabel("size, as numbered on the right")
    for number, place in enumerate(places_of, 1):
        axes.annotate(f"{number}", (place, 1.0), (0, 5), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha="center", fontweight="bold")  # fmt: skip


def intensity(table: TimingTable) -> float:
    """FLOP/byte; 0 where either is not known."""
    if table.work is None or not table.work.bytes_moved:
        return 0.0
    return sum(table.work.flops.values()) / table.work.bytes_moved


def rate(table: TimingTable, timing: Timing) -> float:
    """TFLOP/s."""
    return rate_at(table, timing.median_ms)


def rate_at(table: TimingTable, milliseconds: float) -> float:
    return sum(table.work.flops.values()) / milliseconds / 1e9 if table.work else 0.0


def height(table: TimingTable) -> float:
    """Where the number of a size belongs: at its kernel, or at the limit where nothing was timed."""
    if kernel := table.of(KERNEL):
        return rate(table, kernel)
    return rate_at(table, table.limit.ms) if table.limit and not table.timings else 0.0


def share_reached(table: TimingTable) -> str:
    """How near to the roof the kernel comes."""
    kernel, limit = table.of(KERNEL), table.limit
    if limit is None:
        return "limit not known"
    if kernel is None:
        return f"{digits(limit.ms)} ms (estimated), {limit.binds}-bound" if not table.timings else "not timed"
    return f"{percent(limit.ms / kernel.median_ms)} of the limit, {limit.binds}-bound"


def roofs_of(ceilings: Ceilings, tables: Sequence[TimingTable], *, tf32: bool) -> dict[str, float]:
    """The rates of the products, by dtype; where there are none, that of the vector units."""
    products = {dtype for table in tables if table.work for dtype in products_in(table.work)}
    if tf32 and "float32" in products:
        products = products - {"float32"} | {"tf32"}
    dtypes = products or {"float32"}
    return {dtype: rate for dtype, rate in ceilings.matmul_tflops.items() if dtype in dtypes}


def bound_axes(
    axes: Axes, ceilings: Ceilings, roofs: Mapping[str, float], tables: Sequence[TimingTable]
) -> None:
    """All points, and the ridges where memory and compute bind alike, with room around; plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    slope = ceilings.copy_gbytes_per_s / 1e3
    ridges = [roof / slope for roof in roofs.values()] or [max(intensity(table) for table in tables)]
    xs = [intensity(table) for table in tables]
    left, right = min(*xs, max(ridges) / 8) / 4, max(*xs, *ridges) * 8
    rates = [rate(table, timing) for table in tables for timing in table.timings]
    ys = [y for y in (*rates, *(height(table) for table in tables)) if y > 0]
    bottom, top = min([*ys, slope * min(xs)]) / 3, max([*ys, slope * max(ridges)]) * 2
    axes.set(xlim=(left, right), ylim=(bottom, top))
    for axis, decades in ((axes.xaxis, math.log10(right / left)), (axes.yaxis, math.log10(top / bottom))):
        axis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:,g}"))
        axis.set_minor_formatter(NullFormatter())
        if decades < FEW_DECADES:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def draw_roofs(axes: Axes, ceilings: Ceilings, roofs: Mapping[str, float]) -> None:
    """The slope of the copy and the level of each rate, with their numbers."""
    slope = ceilings.copy_gbytes_per_s / 1e3
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    highest = max(roofs.values(), default=top)
    end = min(highest / slope, right)
    axes.plot([bottom / slope, end], [bottom, end * slope], color=INK, linewidth=2)
    what = "copy" if ceilings.provenance == "measured" else "memory"
    text = f"{what} {ceilings.copy_gbytes_per_s:,.0f} GB/s ({ceilings.provenance})"
    x = math.sqrt(max(left, bottom / slope) * end)
    across, up = PLOT[2] * INCHES[0] / math.log(right / left), PLOT[3] * INCHES[1] / math.log(top / bottom)
    axes.annotate(text, (x, x * slope), (-7, 7), textcoords="offset points", ha="center", va="bottom",
                  rotation=math.degrees(math.atan(up / across)), rotation_mode="anchor")  # fmt: skip
    for name, level in roofs.items():
        axes.plot([level / slope, right], [level, level], color=INK, linewidth=2)
        label = f"{name} {level:,.4g} TFLOP/s ({ceilings.provenance})"
        axes.annotate(label, (right, level), (-6, 5), textcoords="offset points", ha="right")


def number_points(axes: Axes, points: Sequence[tuple[int, float, float]]) -> None:
    """The sizes' numbers to the right of their points, moved apart downwards where points lie together."""
    placed: list[tuple[float, float]] = []
    for number, x, y in sorted(points, key=lambda point: -point[2]):
        across, up = (float(pixel) for pixel in axes.transData.transform((x, y)))
        near = [row for column, row in placed if abs(column - across) < LABEL_REACH]
        row = min([up, *(other - LABEL_GAP for other in near)])
        placed.append((across, row))
        axes.annotate(
            f"{number}", (across, up), (across + LABEL_REACH, row), xycoords="figure pixels",
            textcoords="figure pixels", va="center", fontsize=11, fontweight="bold", zorder=5,
            arrowprops={"arrowstyle": "-", "color": PALE, "linewidth": 0.8, "shrinkA": 1},
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
        )  # fmt: skip
