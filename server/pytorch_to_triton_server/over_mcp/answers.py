"""Answers to calls: structured content, the same as text, charts, links to the files that were written.

What is wrong comes in full, what is right by name, within a length limit; a file has the whole of it.
Texts name arguments and tools as a caller over MCP does, not as a shell spells them.
"""

import base64
import json
import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel

from pytorch_to_triton import places
from pytorch_to_triton.schema.finished import FinishedConversion
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.over_mcp.fit import fit_value, plain, size

Detail = Literal["brief", "full"]
CHARACTERS: dict[Detail, int] = {"brief": 12_000, "full": 60_000}
"""The most of a result: about 4,000 tokens, or 20,000, which is nearly all that assistants accept."""
_WRITTEN = ("kernel", "file", "report", "written", "frozen")
"""Fields of results that name a file for the user."""
_MOST_LINKS = 12
_KINDS = {".py": "text/x-python", ".md": "text/markdown", ".html": "text/html", ".json": "application/json"}
_ROOM_FOR_NOTE = 2000
_NOTED = 20
"""The most omissions that the note lists."""
_IN_FULL = 8
"""The number of wrong cases with all their figures; the others have only what happened."""
_FIRST = ("summary", "next_step", "verdict")
_BRIEF = ("name", "group", "status", "why")
MOST_FILES = 50
MOST_BYTES = 256 << 20
_ARGUMENTS = {parameter.name for tool in TOOLS for parameter in tool.parameters}
_OPTION = re.compile(r"--([a-z][a-z-]*[a-z])\b")
_COMMANDS = {tool.name.replace("_", " "): tool.name for tool in TOOLS if "_" in tool.name}
_COMMAND = re.compile(rf"\b({'|'.join(_COMMANDS)})\b")
_TYPED = re.compile(r"pytorch-to-triton [a-z]")
"""A line with a command to be typed stays as it is."""


def answer_call(
    result: BaseModel, tool: str, detail: Detail = "brief", *, images: bool = True
) -> CallToolResult:
    """A result within the length that `detail` stands for."""
    content = compact(result, tool, CHARACTERS[detail])
    content |= {key: in_callers_words(content[key]) for key in ("summary", "next_step") if key in content}
    text = TextContent(type="text", text=json.dumps(content, ensure_ascii=False))
    pictures = pictures_of(result) if images else []
    return CallToolResult(content=[text, *links_of(result), *pictures], structured_content=content)


def links_of(result: BaseModel) -> list[ResourceLink]:
    """The files that a result names as written for the user."""
    named = [getattr(result, name, None) for name in _WRITTEN]
    if isinstance(result, FinishedConversion):
        named += [file.path for file in result.files]
    paths = (path for path in named if isinstance(path, Path) and path.is_absolute())
    files = dict.fromkeys(path for path in paths if path.is_file())
    return [
        ResourceLink(
            type="resource_link", name=file.name, uri=file.as_uri(), mime_type=_KINDS.get(file.suffix)
        )
        for file in list(files)[:_MOST_LINKS]
    ]


def pictures_of(result: BaseModel) -> list[ImageContent]:
    """The PNG files that a result names."""
    files: tuple[Path, ...] = getattr(result, "pictures", ())
    return [
        ImageContent(type="image", data=base64.b64encode(file.read_bytes()).decode(), mime_type="image/png")
        for file in files
    ]


def compact(result: BaseModel, tool: str, most: int) -> dict[str, Any]:
    """The result as JSON of at most about `most` characters.

    The passed cases of each verdict in it are only named, in `passed_cases`. If it is still too long, the
    least important parts are left out: `cut` lists them, and names the file with the whole result.
    """
    content: dict[str, Any] = plain(_shorten(result.model_dump(mode="json", exclude_defaults=True)))
    if size(content) <= most:
        return content
    cut = fit_value(content, most - _ROOM_FOR_NOTE)
    left_out = [*cut.left_out[:_NOTED], *["and more"] * (len(cut.left_out) > _NOTED)]
    note = {"left_out": left_out, "whole": _keep_whole(result, tool)}
    first = {key: cut.value[key] for key in _FIRST if key in cut.value}
    return {**first, "cut": note, **cut.value}


def _keep_whole(result: BaseModel, tool: str) -> str:
    """The path of a file with the whole result, or why there is none."""
    try:
        return str(keep_result(tool, json.dumps(plain(result.model_dump(mode="json")), indent=1)))
    except OSError as error:
        return f"not saved: {error.strerror}"


def _shorten(value: Any) -> Any:
    match value:
        case {"cases": list(cases), **others}:
            return {**others, **_split(cases)}
        case dict():
            return {key: _shorten(item) for key, item in value.items()}
        case list():
            return [_shorten(item) for item in value]
    return value


def _split(cases: list[dict[str, Any]]) -> dict[str, Any]:
    others = [case for case in cases if case["status"] != "passed"]
    brief = [{key: case[key] for key in _BRIEF if key in case} for case in others[_IN_FULL:]]
    return {
        "cases": others[:_IN_FULL] + brief,
        "passed_cases": [case["name"] for case in cases if case["status"] == "passed"],
    }


def keep_result(tool: str, text: str) -> Path:
    """Write a result of a tool into a new file of the cache, and remove the oldest above the limits.

    Raises OSError.
    """
    folder = places.results()
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    file = folder / f"{now}-{tool}-{secrets.token_hex(3)}.json"
    places.write_atomically(file, text)
    left = MOST_BYTES
    for number, old in enumerate(sorted(folder.glob("*.json"), reverse=True)):  # names begin with the time
        with suppress(FileNotFoundError):  # other servers remove files as well
            left -= old.stat().st_size
            if old != file and (number >= MOST_FILES or left < 0):
                old.unlink()
    return file


def in_callers_words(text: str) -> str:
    """`--into` becomes `into`, `convert start` becomes `convert_start`, except in commands to be typed."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not _TYPED.search(line):
            lines[number] = _COMMAND.sub(lambda match: _COMMANDS[match[1]], _OPTION.sub(_argument, line))
    return "\n".join(lines)


def _argument(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    return name if name in _ARGUMENTS else option[0]
