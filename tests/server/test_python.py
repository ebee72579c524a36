"""The option `python`: a tool that runs code does so in the Python of that path; others take none."""

import json
import sys
from pathlib import Path

import pytest
from mcp import Client

from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.cli import main
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
