"""What a candidate does beside computing is seen, and an honest one is left in peace.

`TRITON_INTERPRET` must be set before triton is imported, and an audit hook stays for good: the checks in
`integrity_checks/` run in fresh processes, one interpreted; each function there without parameters is a case.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKS = Path(__file__).with_name("integrity_checks")
COMPILED = ("compiled",)
INTERPRETED = ("honest", "misconduct", "findings", "kernels", "interpreter")


def cases() -> list[str]:
    """`file.function` of every check, read from the source so that triton stays unloaded here."""
    return [
        f"{name}.{node.name}"
        for name in (*COMPILED, *INTERPRETED)
        for node in ast.parse((CHECKS / f"{name}.py").read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.args.args
    ]


def outcomes_of(names: tuple[str, ...], interpret: str, folder: Path) -> dict[str, str]:
    settings = {"TRITON_INTERPRET": interpret, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    environment = os.environ | settings
    process = subprocess.run(
        [sys.executable, "-W", "error", str(CHECKS / "run.py"), *names],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    return dict(json.loads(line) for line in process.stdout.splitlines() if line.startswith("["))


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each check raised, as text; empty where it passed."""
    folder = tmp_path_factory.mktemp("integrity")
    return outcomes_of(COMPILED, "0", folder) | outcomes_of(INTERPRETED, "1", folder)


@pytest.mark.parametrize("case", cases())
def test_integrity(case: str, outcomes: dict[str, str]) -> None:
    assert outcomes[case] == ""
