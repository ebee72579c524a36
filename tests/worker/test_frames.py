"""Whose code a frame is, where packages lie outside of the interpreter's own folder."""

import shutil
import subprocess
import sys
from pathlib import Path

import typing_extensions


def test_a_package_of_torch_on_pythonpath_counts_as_installed(tmp_path: Path) -> None:
    """torch imports typing_extensions, which looks at its caller's frame while a gradient is computed."""
    shutil.copy(str(typing_extensions.__file__), tmp_path)
    ask = "from pytorch_to_triton.worker.integrity.frames import INSTALLED; print(*INSTALLED, sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-c", ask],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path.resolve()) in found.stdout.splitlines()
