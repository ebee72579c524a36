"""The speed of the reference kernels: each row of a recorded run, beside the fastest alternative."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_to_triton.benchmark.canvas import INK, LOOKS, PALE
from pytorch_to_triton.schema.benchmark import EAGER, KERNEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (9.6, 7.4)
PLOT = (0.225, 0.115, 0.745, 0.735)
RANGE = (0.72, 2.6)
"""Speed-ups that the axis shows; a faster kernel is written in words at its end."""
TICKS = (0.8, 1.0, 1.25, 1.5, 2.0, 2.5)
SLOWER = "#f6e3d8"
"""The colour of the side on which another implementation is faster."""
PASSES = {
    "forward": (*LOOKS[KERNEL], "forward pass"),
    "backward": (*LOOKS[EAGER], "backward pass"),
    "both": ("#009E73", "D", "both passes together"),
}
"""Each pass's colour, marker and name."""


@dataclass(frozen=True)
class Row:
    kernel: str
    passes: str
    times_as_fast: float
    """The fastest alternative's time over the kernel's."""


@dataclass(frozen=True)
class Recording:
    conditions: str
    """GPU, driver, versions and date."""
    rows: tuple[Row, ...]


def read_recording(path: Path) -> Recording:
    """A comment with the conditions, then CSV with a header."""
    conditions, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = tuple(
        Row(line["kernel"].partition(",")[0], line["pass"], float(line["times_as_fast"]))
        for line in csv.DictReader(lines)
    )
    return Recording(conditions.removeprefix("# "), rows)


def speed_figure(recording: Recording) -> Figure:
    """A line for each kernel, the fastest at the top; a mark for each size and pass."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=INCHES, facecolor="white")
    figure.text(0.02, 0.955, "Reference kernels beside the fastest alternative", fontsize=16, weight="bold")
    figure.text(
        0.02, 0.92, "eager PyTorch, torch.compile, liger-kernel or flag_gems; one mark a size and pass, "
        f"all {len(recording.rows)} rows", fontsize=11,
    )  # fmt: skip
    figure.text(0.02, 0.02, recording.conditions, fontsize=9, color="#444444")
    axes = figure.add_axes(PLOT)
    by_kernel: dict[str, list[Row]] = defaultdict(list)
    for row in recording.rows:
        by_kernel[row.kernel].append(row)
    medians = {name: statistics.median(r.times_as_fast for r in rows) for name, rows in by_kernel.items()}
    kernels = sorted(by_kernel, key=medians.__getitem__)
    scale(axes, kernels)
    for passes in PASSES:
        mark(axes, passes, [row for row in recording.rows if row.passes == passes], kernels)
    axes.legend(loc="lower right", frameon=True, framealpha=1.0, edgecolor=PALE, fontsize=10.5)
    return figure


def scale(axes: Axes, kernels: list[str]) -> None:
    """A logarithmic axis of speed-ups, split at 1, and the kernels' names."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    axes.set(xscale="log", xlim=RANGE, ylim=(-0.7, len(kernels) - 0.3))
    axes.set_xticks(TICKS)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g} ×"))
    axes.set_yticks(range(len(kernels)), kernels, fontsize=10.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("the alternative's time / the kernel's time (logarithmic)", fontsize=11)
    axes.grid(visible=True, color="#e8e8e8", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axvspan(RANGE[0], 1.0, color=SLOWER, zorder=0)
    axes.axvline(1.0, color=INK, linewidth=1.4)
    for text, x, side in (("slower", -8, "right"), ("faster", 8, "left")):
        axes.annotate(text, (1.0, 1.0), (x, 5), xycoords=("data", "axes fraction"),
                      textcoords="offset points", ha=side, fontsize=11, weight="bold")  # fmt: skip


def mark(axes: Axes, passes: str, rows: list[Row], kernels: list[str]) -> None:
    """Rows of one pass on their kernels' lines; in words where the axis ends before a speed-up."""
    colour, marker, name = PASSES[passes]
    speed_ups = [min(row.times_as_fast, RANGE[1] / 1.06) for row in rows]
    heights = [kernels.index(row.kernel) for row in rows]
    axes.plot(speed_ups, heights, color=colour, marker=marker, linestyle="none", markersize=8,
              markeredgecolor="white", alpha=0.9, label=name)  # fmt: skip
    for row, shown, height in zip(rows, speed_ups, heights, strict=True):
        if shown < row.times_as_fast:
            axes.annotate(f"{row.times_as_fast:.0f} × →", (shown, height), (-9, 0),
                          textcoords="offset points", ha="right", va="center", fontsize=10.5)  # fmt: skip
