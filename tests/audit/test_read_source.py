"""Files are read in several processes and kept; what cannot be read is reported by name."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytorch_to_triton.audit import read_source
from pytorch_to_triton.audit.analysis.callers import files_near
from pytorch_to_triton.audit.baseline import BASELINE_BYTES, Baseline, read_baseline, write_baseline
from pytorch_to_triton.audit.read_source import FEW, SourceReading, read_all
from pytorch_to_triton.audit.request import settings_for
from pytorch_to_triton.errors import BadInput, Refusal
from pytorch_to_triton.places import SOURCE_BYTES
from pytorch_to_triton_server.names import ANYWHERE, place_of, target_of

from .conftest import Auditing

pytestmark = pytest.mark.anyio

BROKEN = "import triton\n\n@triton.jit\ndef kernel(n):\n    while n:\n        break\n"


def folder_of(tmp_path: Path, count: int) -> list[Path]:
    files = [tmp_path / f"kernel_{number}.py" for number in range(count)]
    for file in files:
        file.write_text(BROKEN, encoding="utf-8")
    return files


async def every(files: list[Path]) -> dict[Path, SourceReading]:
    heard: list[SourceReading] = []

    async def hear(reading: SourceReading) -> None:
        heard.append(reading)

    readings = await read_all(files, hear)
    assert {id(reading) for reading in heard} == {id(reading) for reading in readings}
    assert [reading.file for reading in readings] == files
    return {reading.file: reading for reading in readings}


async def test_many_files_are_read_alike_in_several_processes(tmp_path: Path) -> None:
    files = folder_of(tmp_path, FEW + 4)
    deep = files[3]
    deep.write_text("x = " + "(" * 100_000 + ")" * 100_000 + "\n", encoding="utf-8")
    readings = await every(files)
    assert set(readings) == set(files)
    assert readings.pop(deep).refusal == f"{deep} is nested too deeply to be read."
    found = {
        tuple(f.rule for f in reading.findings if f.severity == "critical") for reading in readings.values()
    }
    assert found == {("unsupported_syntax",)}
    assert {reading.kernels for reading in readings.values()} == {("kernel",)}


async def test_an_unchanged_file_comes_from_the_cache_and_a_changed_one_does_not(
    tmp_path: Path, cache: Path
) -> None:
    (file,) = folder_of(tmp_path, 1)
    first = read_source.read(file)
    (kept,) = (one for one in (cache / "audit").glob("*.json") if str(file) in one.read_text())
    content = json.loads(kept.read_text())
    content["reading"]["kernels"] = ["from_the_cache"]
    kept.write_text(json.dumps(content))
    assert read_source.read(file).kernels == ("from_the_cache",)
    file.write_text(BROKEN.replace("break", "pass"), encoding="utf-8")
    assert read_source.read(file).kernels == first.kernels


async def test_a_damaged_cache_heals(tmp_path: Path, cache: Path) -> None:
    (file,) = folder_of(tmp_path, 1)
    first = read_source.read(file)
    (kept,) = (one for one in (cache / "audit").glob("*.json") if str(file) in one.read_text())
    kept.write_text("{", encoding="utf-8")
    assert read_source.read(file) == first
    assert str(file) in kept.read_text()


async def test_a_finding_has_its_line_its_function_and_the_page_of_its_rule(tmp_path: Path) -> None:
    (file,) = folder_of(tmp_path, 1)
    finding = next(f for f in read_source.read(file).findings if f.rule == "unsupported_syntax")
    assert (finding.excerpt, finding.kernel) == ("break", "kernel")
    assert finding.page == "references/auditing_rules.md#unsupported_syntax"


async def test_an_unreadable_file_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    files = folder_of(tmp_path, 3)
    steps = "\n".join(f"    y{number + 1} = y{number} + 1" for number in range(600))
    files[0].write_text(
        f"import triton\n\n@triton.jit\ndef kernel(y0):\n{steps}\n    tl = y600.x\n", encoding="utf-8"
    )
    files[1].write_bytes(b"# coding: idna\nx = 1\n")
    (tmp_path / ".#test_lock.py").symlink_to(tmp_path / "nowhere")
    readings = await every(files)
    assert "idna" in readings[files[1]].refusal or readings[files[1]].kernels == ()
    assert [bool(readings[file].kernels) for file in files[2:]] == [True]


async def test_columns_are_counted_in_characters(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("import triton.language as tl\né = 1; y = tl.relu(1)\n", encoding="utf-8")
    (finding,) = (f for f in read_source.read(file).findings if f.rule == "nonexistent_api")
    assert finding.column == 12


DEEP = 100_000
HEAD = "import triton\n\n@triton.jit\ndef kernel(n):\n    x = "
NESTED = {
    "parentheses": HEAD + "(" * DEEP + "n" + ")" * DEEP,
    "lists": HEAD + "[" * DEEP + "]" * DEEP,
    "attributes": HEAD + "n" + ".x" * DEEP,
    "attributes that parse": HEAD + "n" + ".x" * 1500,
    "sums": HEAD + "n" + " + n" * DEEP,
    "signs": HEAD + "-" * DEEP + "n",
    "powers": HEAD + "n" + "**n" * DEEP,
    "conditions": HEAD + "n if n else " * DEEP + "n",
    "elifs": HEAD + "n\n    if n:\n        x = n" + "\n    elif n:\n        x = n" * DEEP,
    "ifs": HEAD + "n" + "".join(f"\n{' ' * depth}if n:" for depth in range(4, 120)) + " pass",
    "calls": HEAD + "n" + "()" * DEEP,
    "lambdas": HEAD + "lambda: " * DEEP + "n",
}


@pytest.mark.parametrize("source", NESTED.values(), ids=NESTED.keys())
def test_a_file_that_is_nested_too_deeply_is_reported(source: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.py"
    file.write_text(source + "\n", encoding="utf-8")
    assert read_source.read(file).refusal == f"{file} is nested too deeply to be read."


async def test_the_other_files_of_a_folder_are_audited(read: Auditing, tmp_path: Path) -> None:
    kinds = ("parentheses", "signs", "attributes that parse")
    deep = {tmp_path / f"deep_{number}.py": NESTED[kind] for number, kind in enumerate(kinds)}
    for file, source in deep.items():
        file.write_text(source + "\n", encoding="utf-8")
    (tmp_path / "faulty.py").write_text(BROKEN, encoding="utf-8")
    report = await read(tmp_path)
    assert [finding.rule for finding in report.findings] == ["unsupported_syntax"]
    assert {one.file for one in report.unread} == set(deep)
    assert f"{len(deep)} files could not be read." in report.summary


Making = Callable[[Path], None]

ENDLESS: dict[str, tuple[Making, str]] = {
    "device": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "pipe": (os.mkfifo, "not a regular file"),
    "huge": (lambda path: sparse(path, BASELINE_BYTES + 1), "MiB"),
}


def sparse(path: Path, size: int) -> None:
    """A file of zeros that takes no room."""
    with path.open("wb") as file:
        file.truncate(size)


READ: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a baseline": ("known.json", read_baseline),
    "settings": ("pyproject.toml", lambda path: settings_for(path.parent)),
    "a target": ("kernel.py", lambda path: target_of(str(path), ANYWHERE)),
    "a place": ("kernel.py", lambda path: place_of(str(path), ANYWHERE)),
}


@pytest.mark.parametrize(("name", "reading"), READ.values(), ids=READ.keys())
@pytest.mark.parametrize(("make", "message"), ENDLESS.values(), ids=ENDLESS.keys())
def test_what_is_no_regular_file_or_huge_is_refused(
    make: Making, message: str, name: str, reading: Callable[[Path], object], tmp_path: Path
) -> None:
    make(tmp_path / name)
    with pytest.raises(Refusal, match=message):
        reading(tmp_path / name)


@pytest.mark.parametrize(("make", "message"), ENDLESS.values(), ids=ENDLESS.keys())
def test_an_audited_file_that_is_no_regular_file_or_huge_is_reported_as_unread(
    make: Making, message: str, tmp_path: Path
) -> None:
    make(tmp_path / "kernel.py")
    assert message in read_source.read(tmp_path / "kernel.py").refusal


def test_what_lies_beside_an_audited_file_cannot_hold_it_up(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import triton\n\n@triton.jit\ndef kernel(x_ptr):\n    pass\n\n\nkernel[(1,)](x)\n")
    os.mkfifo(tmp_path / "test_kernel.py")
    sparse(tmp_path / "bench_kernel.py", SOURCE_BYTES + 1)
    assert files_near(kernel, "test_*.py")
    assert read_source.read(kernel).kernels == ("kernel",)


def test_a_baseline_does_not_take_the_place_of_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "baseline.json"
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="not a regular file"):
        write_baseline(pipe, Baseline())
    assert pipe.is_fifo()
