"""The report has every figure with how it came about, and names what is missing."""

from pathlib import Path

from pytorch_to_triton.benchmark.speed_report import brief_table, markdown, write_report
from pytorch_to_triton.results import MARKER, Destination
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.timing import RedFlag

from .sweeps import benchmark, matmul, softmax, softmax_sweep, timing

THROTTLED = RedFlag(kind="throttled", label="", message="The GPU reduced its clocks.")


def rows_of(report: str, heading: str) -> list[dict[str, str]]:
    """The first table below a heading, a dictionary a row."""
    lines = report.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def test_a_size_has_its_times_speed_ups_share_and_a_rate_of_what_bounds_it() -> None:
    report = markdown(benchmark("softmax.py", softmax_sweep()))
    assert rows_of(report, "Speed")[1] == {
        "size": "M=8192 N=4096",
        "dtype": "bfloat16",
        "Triton ms": "0.0367",
        "95 % interval": "0.0363 to 0.0371",
        "PyTorch ms": "0.1096",
        "torch.compile ms": "0.0824",
        "speed-up vs eager": "2.99",
        "speed-up vs best": "2.25",
        "rate": "3,657 GB/s",
        "of the limit": "85 %",
        "bound by": "memory",
    }
    sizes = [matmul(4096, 4096, 4096, kernel=0.1929, eager=0.1939)]
    (row,) = rows_of(markdown(benchmark("matmul.py", sizes)), "Speed")
    assert (row["rate"], row["bound by"], row["of the limit"]) == ("712.5 TFLOP/s", "compute", "100 %")


def test_a_baseline_that_was_timed_at_some_sizes_is_not_measured_at_the_others() -> None:
    sizes = [
        softmax(4096, 32768, kernel=0.17, eager=0.24, liger=0.17),
        softmax(2048, 131072, kernel=0.4, eager=0.56).model_copy(
            update={"failed": {"liger_kernel": "refuses this size"}}
        ),
    ]
    report = markdown(benchmark("softmax.py", sizes))
    assert [row["liger_kernel ms"] for row in rows_of(report, "Speed")] == ["0.1700", "not measured"]
    assert "liger_kernel could not be timed at M=2048 N=131072: refuses this size" in report


def test_figures_that_were_not_taken_are_named_so_and_never_zero() -> None:
    bare = timing("kernel", 0.04).model_copy(
        update={"wall_ms": None, "notes": ("allocates | while captured",)}
    )
    size = softmax(8192, 4096, kernel=0.04, eager=0.1)
    size = size.model_copy(update={"timings": (bare, size.timings[1])})
    row = rows_of(markdown(benchmark("k.py", [size])), "Kernel, call and graph")[0]
    assert row["note"] == "allocates / while captured"
    missing = {name for name, cell in row.items() if cell == "not measured"}
    assert missing == {
        "call ms", "as CUDA graph ms", "outside clock ms", "all streams ms", "launches", "first call ms",
        "peak memory MB",
    }  # fmt: skip


def test_the_conditions_of_the_figures_are_in_the_report_and_a_frozen_file_is_named() -> None:
    report = markdown(benchmark("softmax.py", softmax_sweep()))
    assert "- Device: NVIDIA H200, driver 580.159, torch 2.11.0, Triton 3.6.0, 2026-11-21." in report
    assert "clocks 1,830 to 1,980 of at most 1,980 MHz (NVML)" in report
    assert "copy 4,283 GB/s; products in TFLOP/s: bfloat16 712.0" in report
    assert "(measured, driver 580.159, 2026-11-21)" in report
    assert "- Precision: float32 products in float32 (TF32 off)." in report
    assert "- Work of the forward pass: counted in the traced graph." in report
    assert "- Seed: 7." in report
    assert "| softmax_kernel | N=4096 | num_warps=8 | not measured |" in report
    assert "holds them as a table" not in report
    assert report.rstrip().endswith("pytorch-to-triton benchmark softmax.py --seed 7")
    frozen = benchmark("softmax.py", softmax_sweep()).model_copy(update={"frozen": Path("softmax_frozen.py")})
    assert "softmax_frozen.py holds them as a table and does no tuning." in markdown(frozen)


def test_what_nvml_did_not_report_is_given_with_the_reason() -> None:
    whole = benchmark("softmax.py", softmax_sweep())
    assert whole.conditions is not None
    silent = whole.conditions.model_copy(
        update={"driver": None, "sm_clock_mhz": None, "provenance": "not available: no NVML"}
    )
    unknown = whole.model_copy(update={"conditions": silent, "ceilings": None})
    assert "State while timing: not measured (not available: no NVML)." in markdown(unknown)
    assert "- Ceilings: not measured." in markdown(unknown)


def test_red_flags_come_the_worst_first_with_their_sizes_and_more_than_the_limit_is_explained() -> None:
    sizes = [softmax(8192, 4096, kernel=0.1, eager=0.05)]
    report = markdown(benchmark("softmax.py", sizes, (THROTTLED,)))
    flags = [line for line in report.splitlines() if line.startswith(("- throttled", "- slower", "- below"))]
    assert flags[0] == "- throttled: The GPU reduced its clocks."
    assert flags[1].startswith(
        "- slower than eager: at M=8192 N=4096: The kernel takes 0.1000 ms, 2.00 times"
    )
    assert len(flags) == 3
    assert "None." in markdown(benchmark("softmax.py", softmax_sweep()))
    report = markdown(benchmark("k.py", [softmax(8192, 4096, kernel=0.02, eager=0.1)]))
    assert "157 %" in report
    assert "More than 100 % of the limit" in report


def test_the_table_for_a_terminal_fits_a_hundred_columns() -> None:
    sizes = [*softmax_sweep(), softmax(16384, 131072, kernel=2.4, eager=4.5, max_autotune=4.2)]
    headings, rows = brief_table(benchmark("softmax.py", sizes))
    assert rows[1] == (
        "M=8192 N=4096", "0.0367", "0.1096 (2.99)", "0.0824 (2.25)", "not measured", "85 %", "memory",
    )  # fmt: skip
    columns = zip(headings, *rows, strict=True)
    assert sum(max(len(cell) for cell in column) + 1 for column in columns) <= 100


def test_the_folder_holds_report_pictures_and_the_values(tmp_path: Path) -> None:
    destination = Destination(tmp_path / "new" / "folder", "benchmark", Target(path=tmp_path / "softmax.py"))
    whole = write_report(benchmark("softmax.py", softmax_sweep()), destination)
    assert whole.folder == tmp_path / "new" / "folder"
    assert {file.name for file in whole.folder.iterdir()} == {
        "report.md", "report.json", "speedup.png", "roofline.png", MARKER,
    }  # fmt: skip
    assert "![roofline](roofline.png)" in (whole.folder / "report.md").read_text(encoding="utf-8")
    assert Benchmark.model_validate_json((whole.folder / "report.json").read_text(encoding="utf-8")) == whole
