"""Answers to calls: structured content, the same as text, charts, links to the files that were written."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel

from pytorch_to_triton.schema.finished import FinishedConversion
from pytorch_to_triton_server.over_mcp.compact import compact
from pytorch_to_triton_server.over_mcp.wording import in_callers_words

Detail = Literal["brief", "full"]
CHARACTERS: dict[Detail, int] = {"brief": 12_000, "full": 60_000}
"""The most of a result: about 4,000 tokens, or 20,000, which is nearly all that assistants accept."""
_WRITTEN = ("kernel", "file", "report", "written", "frozen")
"""Fields of results that name a file for the user."""
_MOST_LINKS = 12
_KINDS = {".py": "text/x-python", ".md": "text/markdown", ".html": "text/html", ".json": "application/json"}


def answered(
    result: BaseModel, tool: str, detail: Detail = "brief", *, images: bool = True
) -> CallToolResult:
    """A result within the length that `detail` stands for."""
    content = reworded(compact(result, tool, CHARACTERS[detail]))
    text = TextContent(type="text", text=json.dumps(content, ensure_ascii=False))
    pictures = pictures_of(result) if images else []
    return CallToolResult(content=[text, *links_of(result), *pictures], structured_content=content)


def reworded(content: dict[str, Any]) -> dict[str, Any]:
    """What is said to the caller, in the caller's words."""
    said = ("summary", "next_step")
    return {key: in_callers_words(value) if key in said else value for key, value in content.items()}


def links_of(result: BaseModel) -> list[ResourceLink]:
    """The files that a result names as written for the user."""
    files = dict.fromkeys(file for value in written_by(result) for file in files_in(value))
    return [
        ResourceLink(
            type="resource_link", name=file.name, uri=file.as_uri(), mime_type=_KINDS.get(file.suffix)
        )
        for file in list(files)[:_MOST_LINKS]
    ]


def written_by(result: BaseModel) -> Iterator[object]:
    """The fields of a result that name files which were written."""
    yield from (getattr(result, name, None) for name in _WRITTEN)
    if isinstance(result, FinishedConversion):
        yield result.files


def files_in(value: object) -> Iterator[Path]:
    """The absolute path in a value, or those of several files that were finished."""
    for each in (file.path for file in value) if isinstance(value, tuple) else (value,):
        if isinstance(each, Path) and each.is_absolute() and each.is_file():
            yield each


def pictures_of(result: BaseModel) -> list[ImageContent]:
    """The PNG files that a result names."""
    files: tuple[Path, ...] = getattr(result, "pictures", ())
    return [
        ImageContent(type="image", data=base64.b64encode(file.read_bytes()).decode(), mime_type="image/png")
        for file in files
    ]
