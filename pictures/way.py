"""The way from a PyTorch function to a kernel that can be merged, and where it stops."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pytorch_to_triton.benchmark.canvas import INK, LOOKS
from pytorch_to_triton.schema.benchmark import COMPILE, EAGER, KERNEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES = (9.6, 3.7)
BLUE, GREEN, RED = LOOKS[KERNEL][0], LOOKS[COMPILE][0], LOOKS[EAGER][0]


@dataclass(frozen=True)
class Box:
    """A step of the way, placed on a plane of 96 by 37."""

    left: float
    width: float
    title: str
    lines: tuple[str, ...]
    colour: str


TOP, HEIGHT = 29.0, 16.5
BOXES = (
    Box(1.5, 17.0, "target", ("a PyTorch function", "or nn.Module,", "its inputs declared"), INK),
    Box(24.0, 17.0, "draft", ("Triton source from", "the traced graph;", "or your own file"), BLUE),
    Box(
        46.5, 25.0, "gate",
        ("agrees with float64: odd sizes,", "strides, dtypes, NaN, bounds,",
         "races, no shortcuts; compiles;", "audited; on a GPU not slower"), RED,
    ),
    Box(77.0, 17.5, "merged kernel", ("same signature,", "tests, a benchmark,", "a report"), GREEN),
)  # fmt: skip


def way_figure() -> Figure:
    """Four boxes from left to right; a shut gate leads back to the draft, an open one to the next stage."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=INCHES, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 96), ylim=(0, 37))
    axes.set_axis_off()
    axes.text(1.5, 33.0, "From a PyTorch function to a kernel you can merge", fontsize=16, weight="bold")
    for box in BOXES:
        draw_box(axes, box)
    for box, following in pairwise(BOXES):
        draw_arrow(axes, (box.left + box.width + 0.6, TOP - 8), (following.left - 0.6, TOP - 8))
    _, draft, gate, _ = BOXES
    draw_return(axes, gate.left + 17, draft.left + 5.5, 4.0, RED)
    axes.text(43.0, 1.6, "shut: what failed, where, and the smallest case that shows it", ha="center",
              va="center", fontsize=10.5, color=RED)  # fmt: skip
    draw_return(axes, gate.left + 8, draft.left + 11.5, 8.2, BLUE)
    axes.text(43.2, 6.3, "open: the next stage", ha="center", va="center", fontsize=10.5, color=BLUE)
    axes.text(
        77.0, 9.0, "three stages: correct,\noptimised, tuned;\na gate for each", fontsize=10.5, va="top"
    )
    return figure


def draw_box(axes: Axes, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (box.left, TOP - HEIGHT), box.width, HEIGHT, boxstyle="round,pad=0,rounding_size=1.2",
            facecolor="#fafafa", edgecolor=box.colour, linewidth=2,
        )
    )  # fmt: skip
    axes.text(box.left + 1.3, TOP - 2.8, box.title, fontsize=13, weight="bold", color=box.colour, va="center")
    axes.text(box.left + 1.3, TOP - 5.2, "\n".join(box.lines), fontsize=10.5, va="top", linespacing=1.35)


def draw_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = INK) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "mutation_scale": 16, "shrinkA": 0}
    axes.annotate("", end, start, arrowprops={**style, "shrinkB": 0})


def draw_return(axes: Axes, start: float, end: float, depth: float, colour: str) -> None:
    """A line below the boxes from the gate back to the draft."""
    bottom = TOP - HEIGHT
    axes.plot([start, start, end], [bottom, depth, depth], color=colour, linewidth=2)
    draw_arrow(axes, (end, depth), (end, bottom), colour)
