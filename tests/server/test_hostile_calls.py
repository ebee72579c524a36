"""Whatever the arguments, the answer is a result or says what is wrong, and the server keeps running."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from pytorch_to_triton_server.serve import MOST_OF_AN_ERROR

from .clients import kept_to

pytestmark = pytest.mark.anyio

KERNEL = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [4]}


def reference(x):
    return x


def run(x):
    return x
"""
VALID: dict[str, dict[str, Any]] = {
    "validate": {"kernel": "kernel.py", "python": "absent"},
    "convert": {"target": "kernel.py", "python": "absent"},
    "benchmark": {"kernel": "kernel.py", "estimate": "H200", "python": "absent"},
    "inspect": {"target": "kernel.py", "python": "absent"},
    "audit": {"paths": ["kernel.py"], "evidence": "source"},
    "docs_search": {"query": "load"},
    "docs_read": {"name": "masks"},
    "docs_status": {},
    "convert_start": {"target": "kernel.py", "python": "absent"},
    "convert_submit": {"session": "absent"},
    "convert_status": {"session": "absent"},
    "convert_list": {"below": "absent"},
    "convert_restore": {"session": "absent", "attempt": 1},
    "convert_finish": {"session": "absent"},
    "convert_drop": {"session": "absent"},
    "job": {"job_id": "0"},
}
"""Arguments with which a call ends before a process starts; each is replaced by hostile ones in turn."""
PATHS = (
    "", "a\0b.py", "\ud800.py", "not_text_\udcff.py", "x" * 5000, "x/" * 3000, "~nobody/x.py", "/dev/zero",
    "pipe.py", "circle.py", "folder.py", "binary.py", "latin.py", "empty.py", "absent.py", "kernel.py/x.py",
    "kernel.py:", "kernel.py:no name", ":::", "unreadable.py", "https://example.com/k.py", "broken.py",
)  # fmt: skip
TEXTS = (
    "", "\0", "\ud800", "x" * 50_000, "=", "x=", "x=\0", "x=float32[\ud800]", "x=" + "[" * 500, "x=1e999",
    "N=" + "9" * 5000, "N=-1", "x=float32[99999999999999999]", "x=float32[N] in nan..1", "sm_" + "9" * 5000,
)  # fmt: skip
NUMBERS = (-1, 0, 2**64, 10**400, -1.5, float("nan"), float("inf"), "nan", "inf", "9" * 5000)
OTHER_TYPES: tuple[object, ...] = (None, [], {}, [None], [[]], {"a": 1}, True, 1.5, [1], ["\0"])
NAMING_PATHS = frozenset(
    [
        "kernel",
        "target",
        "reference",
        "against",
        "into",
        "freeze",
        "baseline",
        "paths",
        "python",
        "session",
        "below",
        "example",
        "file",
    ]
)


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current folder, with files of every unpleasant kind."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "not_text_\udcff.py").write_text(KERNEL)
    (folder / "folder.py").mkdir()
    (folder / "circle.py").symlink_to(folder / "circle.py")
    (folder / "binary.py").write_bytes(bytes(range(256)))
    (folder / "latin.py").write_bytes(b"x = '\xe9'\n")
    (folder / "empty.py").touch()
    (folder / "broken.py").write_text("def run(:\n")
    (folder / "unreadable.py").write_text(KERNEL)
    (folder / "unreadable.py").chmod(0)
    os.mkfifo(folder / "pipe.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
async def hostile_client(client: Client, kept_open: None, hostile_folder: Path) -> AsyncIterator[Client]:
    """A client of a server that works in that folder."""
    async with kept_to(Path("/"), patience=30) as client:
        yield client


def hostile_values(name: str, schema: str) -> list[object]:
    """What to pass for a parameter: values that its type allows, and values of every other type."""
    is_list = "'array'" in schema
    if name in NAMING_PATHS:
        values: list[object] = list(PATHS)
    elif "'number'" in schema or "'integer'" in schema:
        values = list(NUMBERS)
    else:
        values = list(TEXTS)
    return [*([value] if is_list else value for value in values), *OTHER_TYPES]


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.corpora)])
@pytest.mark.parametrize("tool", VALID)
async def test_every_hostile_argument_is_answered_with_a_result_or_a_reason(
    hostile_client: Client, tool: str, step: int
) -> None:
    """A third of the values, others for each parameter; with the corpora all."""
    [served] = [one for one in (await hostile_client.list_tools()).tools if one.name == tool]
    wrong = []
    for number, (name, schema) in enumerate(served.input_schema["properties"].items()):
        for value in hostile_values(name, str(schema))[number % step :: step]:
            if name == "python" and not value:
                continue  # the server's own Python: the call would do its work
            result = await hostile_client.call_tool(tool, {**VALID[tool], name: value})
            problem = problem_with(result)
            if problem:
                wrong.append((name, repr(value)[:60], problem))
    assert wrong == []
    assert not (await hostile_client.call_tool("docs_search", {"query": "load"})).is_error


async def test_a_file_that_cannot_be_loaded_is_answered_with_a_reason_and_a_long_name_is_not_repeated(
    hostile_client: Client,
) -> None:
    files = ("binary.py", "latin.py", "empty.py", "broken.py", "kernel.py:" + "a" * 5000)
    for tool, argument in (("validate", "kernel"), ("inspect", "target")):
        for file in files:
            result = await hostile_client.call_tool(tool, {argument: file})
            assert result.is_error
            assert problem_with(result) == ""
            assert len(str(result.content)) < 1000 or len(file) < 1000


def problem_with(result: Any) -> str:
    """What is wrong with an answer; empty where it is a result, or an error that says what is wrong."""
    content = result.content[0]
    assert isinstance(content, TextContent)
    text = content.text
    if not result.is_error:
        return "" if result.structured_content["summary"] else "a result that says nothing"
    reason, _, way_out = text.partition("\n")
    bare = text.startswith("Error executing tool") or "defect" in text or "Traceback" in text
    if bare or not reason.strip() or not way_out.strip():
        return f"no reason: {text[:300]}"
    return f"{len(text)} characters" if len(text) > MOST_OF_AN_ERROR + 200 else ""
