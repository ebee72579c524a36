"""Pictures are PNG files of a known size, show their data, and leave the user's home and terminal alone."""

import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import pytest
from PIL import Image

from pytorch_to_triton.benchmark.pictures import draw, plain_matplotlib, roofline_figure, speedup_figure
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.timing import TimingTable

from .sweeps import H200, benchmark, matmul, softmax, softmax_sweep


def drawn(folder: Path, sizes: Sequence[TimingTable]) -> dict[str, Image.Image]:
    """The pictures by name, decoded."""
    folder.mkdir()
    files = draw(benchmark("softmax.py", sizes), folder)
    assert set(folder.iterdir()) == set(files)
    return {file.name: Image.open(file).convert("RGB") for file in files}


def words_of(whole: Benchmark, kind: str) -> str:
    """All text in a picture."""
    with plain_matplotlib():
        figure = (
            roofline_figure(whole, H200, whole.tables)
            if kind == "roofline"
            else speedup_figure(whole, whole.tables)
        )
        figure.canvas.draw()
        return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def test_other_figures_give_other_pictures_and_the_same_give_the_same(tmp_path: Path) -> None:
    slower = [softmax(8192, 4096, kernel=0.06, eager=0.1), softmax(4096, 32768, kernel=0.2, eager=0.3)]
    faster = [softmax(8192, 4096, kernel=0.04, eager=0.1), softmax(4096, 32768, kernel=0.2, eager=0.3)]
    first, again = drawn(tmp_path / "first", slower), drawn(tmp_path / "again", slower)
    other = drawn(tmp_path / "other", faster)
    assert {name: picture.size for name, picture in first.items()} == dict.fromkeys(
        ("speedup.png", "roofline.png"), (1200, 800)
    )
    for name in ("speedup.png", "roofline.png"):
        assert first[name].tobytes() == again[name].tobytes()
        assert first[name].tobytes() != other[name].tobytes()


def test_the_kernel_is_blue_and_eager_is_vermilion_in_the_roofline(tmp_path: Path) -> None:
    picture = drawn(tmp_path / "one", [softmax(8192, 4096, kernel=0.04, eager=0.1)])["roofline.png"]
    colours = {colour for _, colour in picture.getcolors(maxcolors=1_000_000) or []}
    assert (0x00, 0x72, 0xB2) in colours
    assert (0xD5, 0x5E, 0x00) in colours


def test_a_speed_up_names_sizes_baselines_device_and_date() -> None:
    words = words_of(benchmark("softmax.py", softmax_sweep()), "speedup")
    for label in (
        "softmax.py: speed-up over each baseline",
        "NVIDIA H200, bfloat16, forward pass",
        "2  M=8192 N=4096 (134 MB)",
        "over eager",
        "bytes moved at least, in MB",
        "2026-11-21",
    ):
        assert label in words


def test_a_roofline_has_the_measured_numbers_on_it() -> None:
    sizes = [
        matmul(16, 8192, 8192, kernel=0.0437, eager=0.05),
        matmul(8192, 8192, 8192, kernel=2.0, eager=1.6),
    ]
    words = words_of(benchmark("matmul.py", sizes), "roofline")
    for label in (
        "copy 4,283 GB/s (measured)",
        "bfloat16 712 TFLOP/s (measured)",
        "FLOP/byte",
        "performance in TFLOP/s",
        "72 % of the limit, memory-bound",
        "77 % of the limit, compute-bound",
    ):
        assert label in words


def test_one_size_is_shown_as_bars_with_the_limit() -> None:
    words = words_of(benchmark("softmax.py", [softmax(8192, 4096, kernel=0.04, eager=0.1)]), "speedup")
    assert "time at M=8192 N=4096" in words
    assert "0.1000 ms\nkernel 2.50 times as fast" in words
    assert "limit 0.0313 ms (memory-bound)" in words


def test_many_sizes_and_long_names_are_cut_rather_than_drawn_over_the_edge() -> None:
    name = "a/very/long/path/" * 10 + "kernel.py"
    sizes = [softmax(2**n, 4096, kernel=0.01 * 2**n, eager=0.02 * 2**n, liger=0.03) for n in range(40)]
    words = words_of(benchmark(name, sizes), "speedup")
    assert "kernel.py: speed-up" in words
    assert "and more, as the report lists them" in words


def test_a_run_without_baselines_or_ceilings_has_nothing_to_draw(tmp_path: Path) -> None:
    alone = benchmark("softmax.py", [softmax(8192, 4096, kernel=0.04)]).model_copy(update={"ceilings": None})
    assert draw(alone, tmp_path) == ()


def test_odd_letters_are_drawn_in_silence_with_the_fonts_listed_in_this_projects_cache(
    tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert len(draw(benchmark("核$\\frac$.py", softmax_sweep()), tmp_path)) == 2
    assert capfd.readouterr() == ("", "")
    assert Path(matplotlib.get_cachedir()) == cache / "matplotlib"
    assert "MPLCONFIGDIR" not in os.environ
