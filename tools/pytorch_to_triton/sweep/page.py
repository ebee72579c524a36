"""The results as one page of HTML, without network: a table to sort and filter, and a picture."""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytorch_to_triton.sweep.outcome import STATES, ItemResult
from pytorch_to_triton.sweep.report import SweepReport

if TYPE_CHECKING:
    from jinja2 import Template

WIDTH, HEIGHT, MARGIN = 720, 360, 48
"""Of the picture, in pixels."""
FIGURES = {
    "over eager": "speedup_over_eager",
    "over torch.compile": "speedup_over_compile",
    "of the limit": "share_of_limit",
    "ms": "kernel_ms",
    "seconds": "seconds",
}
"""Columns of numbers; those in which no item has one are left out."""
TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Speed-ups that the picture may name."""


def page_of(report: SweepReport, results: Sequence[ItemResult]) -> str:
    """The page; what comes from kernels and problems is escaped."""
    return _template().render(
        report=report,
        results=results,
        meanings=STATES,
        figures={name: field for name, field in FIGURES.items() if any(value_of(r, field) for r in results)},
        value_of=value_of,
        picture=picture_of(results),
        size=(WIDTH, HEIGHT),
    )


def value_of(result: ItemResult, field: str) -> float | None:
    """A figure of an item; None where it was not measured."""
    value: float | None = getattr(result, field)
    return value


def picture_of(results: Sequence[ItemResult]) -> dict[str, object]:
    """Points of speed-up, on a logarithmic axis, over the share of the limit; empty where none was timed."""
    timed = [(r, r.speedup, r.share_of_limit) for r in results if r.state == "right"]
    known = [(r, speedup, share) for r, speedup, share in timed if speedup and share]
    if not known:
        return {}
    ratios = [speedup for _, speedup, _ in known]
    low, high = min(0.8, *ratios) / 1.1, max(1.25, *ratios) * 1.1
    most = max(1.0, *(share for *_, share in known))

    def across(share: float) -> float:
        return MARGIN + share / most * (WIDTH - 2 * MARGIN)

    def up(speedup: float) -> float:
        part = math.log(speedup / low) / math.log(high / low)
        return HEIGHT - MARGIN - part * (HEIGHT - 2 * MARGIN)

    points = [
        {"key": r.key, "speedup": speedup, "share": share, "x": across(share), "y": up(speedup)}
        for r, speedup, share in known
    ]
    levels = [{"label": f"{tick:g}", "y": up(tick)} for tick in TICKS if low <= tick <= high]
    shares = [{"label": f"{part}%", "x": across(part / 100)} for part in range(0, int(most * 100) + 1, 20)]
    return {"points": points, "levels": levels, "shares": shares}


@cache
def _template() -> "Template":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("sweep.html")
