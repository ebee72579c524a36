"""What completes an argument: files that a call may name, soon, whatever else lies among them."""

import os
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.types import PromptReference, ResourceTemplateReference

from pytorch_to_triton_server.over_mcp.completions import MOST_FILES, python_files

from ..clients import kept_to, serving_in, values, with_roots

pytestmark = pytest.mark.anyio
CONVERT = PromptReference(name="convert")
DEBUG = PromptReference(name="debug")
FUNCTION = "def gelu(x): ...\n"
SECONDS = 60


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a file."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "ops.py").write_text(FUNCTION)
    monkeypatch.chdir(folder)
    return folder


async def test_a_pipe_among_the_files_holds_up_neither_the_completion_nor_the_server(
    folder: Path, cache: Path
) -> None:
    os.mkfifo(folder / "pipe.py")
    with anyio.fail_after(SECONDS):
        async with Client(serving_in(folder, cache)) as client:
            assert await values(client, CONVERT, "target") == ["ops.py:gelu"]
            assert await values(client, DEBUG, "kernel") == ["ops.py"]
            assert (await client.list_tools()).tools


def test_the_search_ends_after_so_many_entries_and_begins_with_the_near_ones(tmp_path: Path) -> None:
    large = tmp_path / "a_large_one"
    for folder in (large, large / "deep"):
        folder.mkdir()
        for number in range(20):
            (folder / f"{number}.py").touch()
    (tmp_path / "near.py").touch()
    found = list(python_files(tmp_path, most=15))
    assert found[0] == str(tmp_path / "near.py")
    assert len(found) < 15
    assert len(list(python_files(tmp_path))) == 41


async def test_a_file_behind_the_first_ones_is_found_by_its_name(folder: Path) -> None:
    for number in range(MOST_FILES + 1):
        (folder / f"a{number}.py").touch()
    async with kept_to() as client:
        assert await values(client, CONVERT, "target", "ops.py:") == ["ops.py:gelu"]
        assert await values(client, DEBUG, "kernel", "op") == ["ops.py"]


async def test_links_are_not_followed(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("def hunter2(): ...\n")
    (folder / "link.py").symlink_to(outside / "secret.py")
    (folder / "linked").symlink_to(outside)
    async with kept_to() as client:
        assert await values(client, CONVERT, "target") == ["ops.py:gelu"]
        assert await values(client, DEBUG, "kernel") == ["ops.py"]


async def test_an_unknown_prompt_argument_or_template_has_no_values(folder: Path) -> None:
    async with kept_to() as client:
        assert await values(client, PromptReference(name="unknown"), "target") == []
        assert await values(client, CONVERT, "gpu") == []
        assert await values(client, ResourceTemplateReference(uri="file:///{path}"), "path") == []
        assert await values(client, ResourceTemplateReference(uri="kernel://{name}"), "page") == []


async def test_only_files_of_the_allowed_folders_are_offered(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "allowed.py").write_text("def silu(x): ...\n")
    async with kept_to(elsewhere) as client:
        assert await values(client, CONVERT, "target") == [f"{elsewhere}/allowed.py:silu"]
        assert await values(client, DEBUG, "kernel", "ops") == []


async def test_only_files_of_the_clients_roots_are_offered(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    async with with_roots(elsewhere.as_uri()) as client:
        assert await values(client, DEBUG, "kernel") == []
