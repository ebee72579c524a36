"""Draw the README's pictures again, as SVG: `python -m pictures.run`, or `make pictures`.

The speed is that of a recorded run, `h200.csv`, in the form in which `make benchmarks` writes `rows.csv`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pictures.speed import read_recording, speed_figure
from pictures.way import way_figure
from pytorch_to_triton.benchmark.canvas import plain_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent


def main(given: Sequence[str] | None = None) -> None:
    """Write way.svg and speed.svg."""
    parser = argparse.ArgumentParser(prog="pictures", description=__doc__.partition("\n")[0])
    recorded = HERE / "h200.csv"
    parser.add_argument("--recording", type=Path, default=recorded, help="rows.csv of `make benchmarks`")
    parser.add_argument("--into", type=Path, default=HERE, help="the folder for way.svg and speed.svg")
    options = parser.parse_args(given)
    with plain_matplotlib():
        save_svg(way_figure(), options.into / "way.svg")
        save_svg(speed_figure(read_recording(options.recording)), options.into / "speed.svg")


def save_svg(figure: Figure, path: Path) -> None:
    """Write the same bytes for the same figure, with letters as outlines: no reader needs its font."""
    from matplotlib import rcParams

    rcParams["svg.hashsalt"] = path.stem
    figure.savefig(path, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
