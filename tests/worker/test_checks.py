"""Checks that need a fresh process: the patched interpreter, the fake GPU, a candidate under observation.

`TRITON_INTERPRET` must be set before triton is imported, and an audit hook stays for good. So the files of a
folder run together in one process, forked from one that has imported torch; each function there without
parameters is a check.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import typing_extensions

HERE = Path(__file__).parent
NOT_INTERPRETED = HERE / "integrity_checks" / "compiled.py"
SHARED = HERE / "integrity_checks" / "author.py"
GROUPS = {
    "compiled kernels": [NOT_INTERPRETED, *HERE.glob("compiled_checks/*.py")],
    "interpreted kernels": sorted(
        {file for kind in ("integrity", "interpreter", "cuda") for file in HERE.glob(f"{kind}_checks/*.py")}
        - {NOT_INTERPRETED, SHARED}
    ),
}


def checks_in(files: Sequence[Path]) -> set[str]:
    """`file.function` of every check, read from the source so that triton stays unloaded here."""
    return {
        f"{file.stem}.{node.name}"
        for file in files
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.args.args
    }


@pytest.mark.parametrize(
    ("group", "asked"),
    [
        *(pytest.param(group, {}, id=group) for group in GROUPS),
        pytest.param(
            "interpreted kernels", {"ALL_KERNELS": "1"}, id="all kernels", marks=pytest.mark.corpora
        ),
    ],
)
def test_every_check_passes(group: str, asked: dict[str, str], tmp_path: Path) -> None:
    files = GROUPS[group]
    settings = asked | {
        "TRITON_INTERPRET": str(int(group != "compiled kernels")),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(tmp_path),
    }
    if group == "compiled kernels":  # with another folder of packages than the interpreter's own
        settings["PYTHONPATH"] = str(tmp_path)
        shutil.copy(str(typing_extensions.__file__), tmp_path)
    process = subprocess.run(
        [sys.executable, "-W", "error", str(HERE / "run_checks.py"), *map(str, files)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    outcomes = dict(json.loads(line) for line in process.stdout.splitlines() if line.startswith("["))
    assert outcomes.keys() == checks_in(files)
    failures = [f"{name}: {failure}" for name, failure in outcomes.items() if failure]
    assert not failures, "\n".join(failures)
