"""The option `python`: a tool that runs code does so in the Python of that path; others take none."""

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch
from mcp import Client

from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.cli import main
from pytorch_to_triton_server.pythons import python_of
from pytorch_to_triton_server.serve import build_server
from pytorch_to_triton_server.settings import ServerSettings

pytestmark = pytest.mark.anyio


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """Has a line for each time that `other_python` was started."""
    return tmp_path / "started"


@pytest.fixture
def other_python(tmp_path: Path, started: Path) -> Path:
    """A Python that is not the server's own: it leaves a trace when it starts, and can do nothing else."""
    file = tmp_path / "python"
    file.write_text(f'#!/bin/sh\necho started >> "{started}"\nexit 7\n')
    file.chmod(0o755)
    return file


async def test_validate_over_mcp_takes_a_python_by_its_path(
    client: Client, right_kernel: Path, other_python: Path, started: Path
) -> None:
    arguments = {"kernel": str(right_kernel), "device": "interpreter", "case": ["N=40"]}
    result = await client.call_tool("validate", {**arguments, "python": str(other_python)})
    assert f"{other_python} cannot run the worker" in str(result.content)
    assert started.exists()


def test_the_command_line_takes_a_python_by_its_path(
    right_kernel: Path, other_python: Path, started: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [str(right_kernel), "--device", "interpreter", "--case", "N=40", "--python", str(other_python)]
    assert main(["validate", *given, "--json"]) == 3
    assert f"{other_python} cannot run" in json.loads(capfd.readouterr().out)["error"]["message"]
    assert started.exists()


def test_a_python_that_cannot_be_a_path_is_the_callers_mistake(
    right_kernel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(right_kernel), "--python", "/no\0where"]) == 2
    assert "is not a usable path" in capfd.readouterr().err


@pytest.fixture
def releases(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All releases of Triton that pip finds: 9.8.7 alone, which is nothing but its version."""
    name = "triton-9.8.7"
    with ZipFile(tmp_path / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("triton/__init__.py", '__version__ = "9.8.7"\n')
        about = f"{name}.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: triton\nVersion: 9.8.7\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    return tmp_path


async def test_a_release_of_triton_is_installed_beside_all_else_that_is_here(
    releases: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    python = await python_of("triton==9.8.7")
    assert "Installing Triton 9.8.7 into" in capfd.readouterr().err
    code = "import triton, torch; print(triton.__version__, torch.__version__)"
    told = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.split() == ["9.8.7", torch.__version__]
    assert await python_of("triton == 9.8.7") == python
    assert capfd.readouterr().err == ""


async def test_a_release_that_cannot_be_had_leaves_nothing_behind(releases: Path, cache: Path) -> None:
    with pytest.raises(MissingRequirement, match=r"Triton 1\.2\.3 cannot be installed: ERROR: No matching"):
        await python_of("triton==1.2.3")
    assert list(cache.rglob("triton-1.2.3*")) == []


async def test_a_read_only_tool_takes_no_program(client: Client) -> None:
    for tool in (tool.name for tool in TOOLS if tool.read_only):
        result = await client.call_tool(tool, {"python": sys.executable})
        assert result.is_error
        assert "python: no such argument" in result.model_dump()["content"][0]["text"]


async def test_the_server_has_a_python_of_its_own(cache: Path, other_python: Path, started: Path) -> None:
    async with Client(build_server(ServerSettings(python=str(other_python)))) as client:
        result = await client.call_tool("docs_search", {"query": "tl.load"})
        assert not result.is_error, result.content
    assert started.exists()
