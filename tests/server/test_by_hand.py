"""Kernels written by hand pass all gates after an attempt that is refused: by a script, stage by stage, and
over MCP in one call.

Each one in one way, with ALL_KERNELS=1 in both.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from .clients import answered

FOLDER = Path(__file__).parents[1] / "convert/session/by_hand"
ALL_KERNELS = bool(os.environ.get("ALL_KERNELS"))
COMMAND = Path(sys.executable).with_name("pytorch-to-triton")
KERNELS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def bug_of(text: str) -> tuple[str, str]:
    """What the kernel has, and what a wrong one has in its place."""
    scope: dict[str, Any] = {}
    (line,) = (line for line in text.splitlines() if line.startswith("BUG = "))
    exec(line, scope)
    right, wrong = scope["BUG"]
    return right, wrong


def with_bug(text: str) -> str:
    """The file with its kernel made wrong."""
    right, wrong = bug_of(text)
    head, kernel = text.split("@triton.autotune", 1)
    assert kernel.count(right) == 1
    return f"{head}@triton.autotune{kernel.replace(right, wrong)}"


@pytest.mark.corpora
@pytest.mark.anyio
@pytest.mark.parametrize("name", KERNELS if ALL_KERNELS else KERNELS[::2])
async def test_over_mcp(client: Client, name: str, tmp_path: Path) -> None:
    kernel = FOLDER / f"{name}.py"
    text = kernel.read_text(encoding="utf-8")
    folder = str(tmp_path / "session")
    target = f"{kernel}:target"
    began = await answered(client, "convert_start", target=target, into=folder, device="interpreter", seed=7)
    Path(began["file"]).write_text(with_bug(text), encoding="utf-8")
    refused = await answered(client, "convert_submit", session=folder)
    assert refused["verdict"] == "shut"
    (wrong,) = (c for c in refused["unmet"] if c["name"] == "right")
    assert "wrong" in wrong["evidence"]
    for _ in range(2):  # The second time it is unchanged, and so is its verdict.
        passed = await answered(client, "convert_submit", session=folder, file=str(kernel), through=3)
        assert (passed["verdict"], passed["stage"]) == ("finished", 3), passed.get("unmet")
    into = str(tmp_path / "result")
    finished = await answered(client, "convert_finish", session=folder, into=into)
    assert finished["verdict"] == "finished", finished["tests"]


@pytest.mark.corpora
@pytest.mark.parametrize("name", KERNELS if ALL_KERNELS else KERNELS[1::2])
def test_by_a_script(name: str, tmp_path: Path) -> None:
    kernel = FOLDER / f"{name}.py"

    def run(*arguments: str) -> dict[str, Any]:
        command = [str(COMMAND), "convert", *arguments, "--json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        answer: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == (1 if answer.get("verdict") == "shut" else 0), done.stderr
        return answer

    text = kernel.read_text(encoding="utf-8")
    run("start", f"{kernel}:target", "--into", "s", "--device", "interpreter", "--seed", "7")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(with_bug(text), encoding="utf-8")
    assert run("submit", "s", "--file", str(wrong))["verdict"] == "shut"
    answers = [run("submit", "s", "--file", str(kernel))["verdict"] for _ in range(3)]
    assert answers == ["opened", "opened", "finished"]
    assert run("finish", "s", "--into", "result")["verdict"] == "finished"
