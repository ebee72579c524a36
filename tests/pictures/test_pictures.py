"""The README's pictures are drawn from the recorded run, losses included, and can be drawn again."""

from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

from pictures.run import HERE, main
from pictures.speed import RANGE, read_recording, speed_figure
from pytorch_to_triton.benchmark.canvas import plain_matplotlib

RECORDING = HERE / "h200.csv"


def test_the_pictures_that_are_shown_are_those_of_the_recording(tmp_path: Path) -> None:
    main(["--into", str(tmp_path)])
    for name in ("way.svg", "speed.svg"):
        shown, drawn = ((folder / name).read_text(encoding="utf-8") for folder in (HERE, tmp_path))
        assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
        if f"v{matplotlib.__version__}," not in shown:
            pytest.skip("drawn by another matplotlib")
        assert drawn == shown, "draw them again: make pictures"


def test_every_row_of_the_recording_is_a_mark_where_its_speed_up_is() -> None:
    recording = read_recording(RECORDING)
    with plain_matplotlib():
        (axes,) = speed_figure(recording).axes
        marks = [float(x) for line in axes.lines if line.get_linestyle() == "None" for x in line.get_xdata()]
    assert len(marks) == len(recording.rows)
    assert [mark for mark in marks if mark < 1]
    assert sorted(marks)[:-1] == sorted(row.times_as_fast for row in recording.rows)[:-1]
    assert max(marks) < RANGE[1] < max(row.times_as_fast for row in recording.rows)


def test_the_picture_names_gpu_versions_and_date() -> None:
    conditions = read_recording(RECORDING).conditions
    with plain_matplotlib():
        texts = [text.get_text() for text in speed_figure(read_recording(RECORDING)).texts]
    assert conditions in texts
    assert "H200" in conditions
