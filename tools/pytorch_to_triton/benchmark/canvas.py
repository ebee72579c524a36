"""What all pictures share: their size, titles, key, colours, and how they are written."""

from __future__ import annotations

import logging
import os
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_to_triton import places
from pytorch_to_triton.benchmark.figures import PASSES
from pytorch_to_triton.schema.benchmark import COMPILE, EAGER, KERNEL, MAX_AUTOTUNE, Benchmark
from pytorch_to_triton.schema.timing import TimingTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 100
INCHES = (12.0, 8.0)
PLOT = (0.09, 0.17, 0.585, 0.68)
"""Left, bottom, width and height of the plot in parts of the picture; the key stands to its right."""
KEY_LEFT = 0.70
KEY_CHARACTERS = 38
LEGEND_CHARACTERS = 29
TICK_CHARACTERS = 16
KEY_LINES = 24
TITLE_CHARACTERS = 44
"""Of the kernel's name; its end matters most."""
FOOT_CHARACTERS = 170

# Okabe and Ito's colours, distinct for people with any colour vision; markers distinguish them in grey, too.
INK, PALE = "#222222", "#8a8a8a"
LOOKS = {
    KERNEL: ("#0072B2", "o"),
    EAGER: ("#D55E00", "s"),
    COMPILE: ("#009E73", "^"),
    MAX_AUTOTUNE: ("#CC79A7", "v"),
}
FURTHER_LOOKS = (("#E69F00", "D"), ("#56B4E9", "P"), ("#7a5c00", "X"), ("#555555", "*"))


@contextmanager
def plain_matplotlib() -> Iterator[None]:
    """matplotlib with its own style, its font list in this project's cache, and nothing printed."""
    log = logging.getLogger("matplotlib.font_manager")
    level, given = log.level, os.environ.get("MPLCONFIGDIR")
    os.environ.setdefault("MPLCONFIGDIR", str(places.cache() / "matplotlib"))
    log.setLevel(logging.ERROR)
    try:
        import matplotlib.figure  # finds its folders and reads or lists the fonts once

        with matplotlib.rc_context(), warnings.catch_warnings():
            matplotlib.rcdefaults()
            matplotlib.rcParams.update({"font.size": 12, "axes.edgecolor": PALE, "text.color": INK})
            matplotlib.rcParams["text.parse_math"] = False  # a $ in a name is a $
            warnings.simplefilter("ignore", UserWarning)  # letters missing in its font
            yield
    finally:
        log.setLevel(level)
        if given is None:
            os.environ.pop("MPLCONFIGDIR", None)


def save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, dpi=DOTS_PER_INCH)
    return path


def blank(benchmark: Benchmark, what: str, how_to_read: str) -> tuple[Figure, Axes]:
    """A picture with titles and footnote, and empty axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=INCHES)
    FigureCanvasAgg(figure)
    mark = "  (estimated)" if benchmark.verdict == "estimated" else ""
    dtypes = ", ".join(dict.fromkeys(d for table in benchmark.tables for d in table.dtypes.values()))
    whose = benchmark.kernel.rpartition("/")[2]
    if len(whose) > TITLE_CHARACTERS:
        whose = f"…{whose[-TITLE_CHARACTERS:]}"
    figure.text(0.03, 0.945, f"{whose}: {what}{mark}", fontsize=17, fontweight="bold")
    subtitle = f"{benchmark.tables[0].device}, {dtypes}, {PASSES[benchmark.passes]}; {how_to_read}"
    figure.text(0.03, 0.91, textwrap.shorten(subtitle, 140, placeholder=" …"), fontsize=12.5)
    foot = f"{benchmark.device}. Precision: {benchmark.precision}. Figures {benchmark.provenance}."
    figure.text(0.03, 0.02, textwrap.fill(foot, FOOT_CHARACTERS, max_lines=3), fontsize=9.5, color="#444444")
    axes = figure.add_axes(PLOT)
    axes.grid(visible=True, which="major", color="#e2e2e2", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def key(figure: Figure, axes: Axes, names: Sequence[str]) -> None:
    """Legend and numbered sizes to the right of the plot."""
    legend = figure.legend(
        *axes.get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(KEY_LEFT - 0.01, 0.865),
        frameon=False, borderpad=0.2, labelspacing=0.7,
    )  # fmt: skip
    taken = sum(1 + text.get_text().count("\n") for text in legend.get_texts())
    entries = (wrap(f"{n}  {name}", KEY_CHARACTERS) for n, name in enumerate(names, 1))
    lines = "\n".join(entries).split("\n")
    if taken + len(lines) > KEY_LINES:
        lines = [*lines[: KEY_LINES - taken], "and more, as the report lists them"]
    text = "\n".join(lines)
    figure.text(KEY_LEFT, 0.835 - 0.034 * taken, text, va="top", fontsize=10.5, linespacing=1.4)


def fold(label: str) -> str:
    """The label on lines that fit beside the bars; a name is broken after an underscore."""
    return textwrap.fill(label.replace("_", "_ "), TICK_CHARACTERS).replace("_ ", "_")


def wrap(text: str, width: int) -> str:
    """Lines of at most this many characters, all but the first indented."""
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, width)]
    return "\n    ".join(lines)


def looks(tables: Sequence[TimingTable]) -> dict[str, tuple[str, str]]:
    """Each label's colour and marker."""
    labels = dict.fromkeys(timing.label for table in tables for timing in table.timings)
    others = [label for label in labels if label not in LOOKS]
    further = {label: FURTHER_LOOKS[i % len(FURTHER_LOOKS)] for i, label in enumerate(others)}
    return {label: LOOKS.get(label) or further[label] for label in labels}
