"""Code written for a GPU runs on CPU tensors under the interpreter.

`TRITON_INTERPRET` must be set before triton is imported, so the checks in `cuda_checks/` run in one fresh
process, all together; each function there without parameters is a case here.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).with_name("cuda_checks")


def cases() -> list[str]:
    """`file.function` of every check, read from the source so that triton stays unloaded here."""
    return [
        f"{file.stem}.{node.name}"
        for file in sorted(CHECKS.glob("*.py"))
        if file.stem != "run"
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.args.args
    ]


@pytest.fixture(scope="session")
def outcomes() -> dict[str, str]:
    """What each check raised, as text; empty where it passed."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.run(
        [sys.executable, "-W", "error", str(CHECKS / "run.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    return dict(json.loads(line) for line in process.stdout.splitlines() if line.startswith("["))


@pytest.mark.parametrize("case", cases())
def test_cuda_stand_in(case: str, outcomes: dict[str, str]) -> None:
    assert outcomes[case] == ""
