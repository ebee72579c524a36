"""The option `python`: any tool runs in the Python of that path; a read-only tool over MCP starts none."""

import json
import sys
from pathlib import Path

import pytest
from anyio import to_thread
from mcp import Client

from pytorch_to_triton_server.cli import main

pytestmark = pytest.mark.anyio


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """Has a line for each time that `other_python` was started."""
    return tmp_path / "started"


@pytest.fixture
def other_python(tmp_path: Path, started: Path) -> Path:
    """A Python that is not the server's own, and leaves a trace when it starts."""
    file = tmp_path / "python"
    file.write_text(f'#!/bin/sh\necho started >> "{started}"\nexec "{sys.executable}" "$@"\n')
    file.chmod(0o755)
    return file


async def test_validate_over_mcp_takes_a_python_by_its_path(client: Client, right_kernel: Path) -> None:
    arguments = {"kernel": str(right_kernel), "device": "interpreter", "case": ["N=40"]}
    result = await client.call_tool("validate", {**arguments, "python": sys.executable})
    assert not result.is_error, result.content
    assert result.structured_content is not None
    assert result.structured_content["verdict"] == "passed"


def test_the_command_line_takes_a_python_by_its_path(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "status", "--json", "--python", sys.executable]) == 0
    assert json.loads(capfd.readouterr().out)["names"] > 300


def test_a_python_that_cannot_be_a_path_is_the_callers_mistake(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "status", "--python", "/no\0where"]) == 2
    assert "is not a usable path" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("docs_search", {"query": "tl.load"}), ("docs_read", {"name": "tl.load"}), ("docs_status", {})],
)
async def test_a_read_only_tool_starts_no_program_that_a_call_names(
    client: Client, other_python: Path, started: Path, tool: str, arguments: dict[str, str]
) -> None:
    result = await client.call_tool(tool, {**arguments, "python": str(other_python)})
    assert result.is_error
    assert "docs_fetch" in result.model_dump()["content"][0]["text"]
    assert not started.exists()


async def test_a_read_only_tool_answers_from_what_is_known_about_another_python(
    client: Client, other_python: Path, started: Path
) -> None:
    assert await to_thread.run_sync(main, ["docs", "status", "--python", str(other_python)]) == 0
    starts = started.read_text()
    result = await client.call_tool("docs_search", {"query": "tl.load", "python": str(other_python)})
    assert not result.is_error, result.content
    assert result.structured_content is not None
    assert result.structured_content["hits"][0]["page"] == "triton.language.load"
    assert started.read_text() == starts
