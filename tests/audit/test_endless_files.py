"""A file that somebody names may be a device, a pipe or huge: it is refused by name before it is read."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytorch_to_triton.audit.analysis.callers import files_near
from pytorch_to_triton.audit.baseline import BASELINE_BYTES, Baseline, read_baseline, write_baseline
from pytorch_to_triton.audit.read_source import read
from pytorch_to_triton.audit.request import settings_for
from pytorch_to_triton.errors import BadInput, Refusal
from pytorch_to_triton.places import SOURCE_BYTES
from pytorch_to_triton_server.boundary import ANYWHERE
from pytorch_to_triton_server.names import place_of, target_of

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
    assert message in read(tmp_path / "kernel.py").refusal


def test_what_lies_beside_an_audited_file_cannot_hold_it_up(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("import triton\n\n@triton.jit\ndef kernel(x_ptr):\n    pass\n\n\nkernel[(1,)](x)\n")
    os.mkfifo(tmp_path / "test_kernel.py")
    sparse(tmp_path / "bench_kernel.py", SOURCE_BYTES + 1)
    assert files_near(kernel, "test_*.py")
    assert read(kernel).kernels == ("kernel",)


def test_a_baseline_does_not_take_the_place_of_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "baseline.json"
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="not a regular file"):
        write_baseline(pipe, Baseline())
    assert pipe.is_fifo()
