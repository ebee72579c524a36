"""Results as an assistant reads them: what is wrong in full, what is right by name, within a length limit."""

import json
from typing import Any

from pydantic import BaseModel

from pytorch_to_triton_server.over_mcp import kept_results
from pytorch_to_triton_server.over_mcp.fit import fitted, plain, size

_ROOM_FOR_NOTE = 2000
_NOTED = 20
"""The most omissions that the note lists."""

_IN_FULL = 8
"""The number of wrong cases with all their figures; the others have only what happened."""
_FIRST = ("summary", "next_step", "verdict")
_BRIEF = ("name", "group", "status", "why")


def compact(result: BaseModel, tool: str, most: int) -> dict[str, Any]:
    """The result as JSON of at most about `most` characters.

    The passed cases of each verdict in it are only named, in `passed_cases`. If it is still too long, the
    least important parts are left out: `cut` lists them, and names the file with the whole result.
    """
    content: dict[str, Any] = plain(_shorten(result.model_dump(mode="json", exclude_defaults=True)))
    if size(content) <= most:
        return content
    cut = fitted(content, most - _ROOM_FOR_NOTE)
    left_out = [*cut.left_out[:_NOTED], *["and more"] * (len(cut.left_out) > _NOTED)]
    note = {"left_out": left_out, "whole": _kept(result, tool)}
    first = {key: cut.value[key] for key in _FIRST if key in cut.value}
    return {**first, "cut": note, **cut.value}


def _kept(result: BaseModel, tool: str) -> str:
    """The path of a file with the whole result, or why there is none."""
    try:
        return str(kept_results.keep(tool, json.dumps(plain(result.model_dump(mode="json")), indent=1)))
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
