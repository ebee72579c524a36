"""Many files are read in several processes, and a file that has not changed is not read again."""

import json
from pathlib import Path

import pytest

from pytorch_to_triton.audit.read_source import FEW, SourceReading, read, read_all

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
    first = read(file)
    (kept,) = (one for one in (cache / "audit").glob("*.json") if str(file) in one.read_text())
    content = json.loads(kept.read_text())
    content["reading"]["kernels"] = ["from_the_cache"]
    kept.write_text(json.dumps(content))
    assert read(file).kernels == ("from_the_cache",)
    file.write_text(BROKEN.replace("break", "pass"), encoding="utf-8")
    assert read(file).kernels == first.kernels


async def test_a_damaged_cache_heals(tmp_path: Path, cache: Path) -> None:
    (file,) = folder_of(tmp_path, 1)
    first = read(file)
    (kept,) = (one for one in (cache / "audit").glob("*.json") if str(file) in one.read_text())
    kept.write_text("{", encoding="utf-8")
    assert read(file) == first
    assert str(file) in kept.read_text()


async def test_a_finding_has_its_line_its_function_and_the_page_of_its_rule(tmp_path: Path) -> None:
    (file,) = folder_of(tmp_path, 1)
    finding = next(f for f in read(file).findings if f.rule == "unsupported_syntax")
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
    (finding,) = (f for f in read(file).findings if f.rule == "nonexistent_api")
    assert finding.column == 12
