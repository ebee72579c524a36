"""One table of a TOML text, changed without touching the rest."""

import json
import re
import tomllib
from typing import Any

from pytorch_to_triton_server.install.unreadable import Unreadable

_HEADER = re.compile(r"^\s*\[")


def read(text: str) -> dict[str, Any]:
    """What the text says. Raises Unreadable."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not valid TOML: {error}") from error


def with_entry(text: str, section: str, key: str, entry: dict[str, Any]) -> str:
    """The text with the table [section.key] set."""
    table = _table(f"{section}.{key}", entry)
    found = _lines_of(text, section, key)
    lines = text.splitlines(keepends=True)
    if found is not None:
        return "".join([*lines[: found[0]], table, *lines[found[1] :]])
    if text and not text.endswith("\n"):
        text += "\n"
    return f"{text}\n{table}" if text.strip() else table


def without_entry(text: str, section: str, key: str) -> str:
    """The text without the table [section.key] and those below it."""
    found = _lines_of(text, section, key)
    if found is None:
        return text
    lines = text.splitlines(keepends=True)
    start, end = found
    if start and not lines[start - 1].strip():  # the empty line that set it apart
        start -= 1
    return "".join([*lines[:start], *lines[end:]])


def _lines_of(text: str, section: str, key: str) -> tuple[int, int] | None:
    """The lines of the table and those below it: its first, and the one after the last that says anything."""
    quoted = rf"""\s*(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')\s*"""
    ours = re.compile(rf"^\s*\[\s*{re.escape(section)}\s*\.{quoted}(?:\..*)?\]")
    lines = text.splitlines()
    headers = (i for i, line in enumerate(lines) if ours.match(line))
    start = next((i for i in headers if _is_whole("\n".join(lines[:i]))), None)
    if start is None:
        return None
    others = (i for i, line in enumerate(lines) if i > start and _HEADER.match(line) and not ours.match(line))
    end = next(others, len(lines))
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return start, end


def _is_whole(text: str) -> bool:
    """Whether no value goes on after the text: what looks like a header may be part of a string."""
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _table(name: str, entry: dict[str, Any]) -> str:
    """A table, with those below it after it."""
    values = {key: value for key, value in entry.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in entry.items() if isinstance(value, dict)}
    lines = [f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in values.items())]
    below = ["\n" + _table(f"{name}.{_key(key)}", value) for key, value in tables.items()]
    return "\n".join(lines) + "\n" + "".join(below)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _value(value: Any) -> str:
    """Raises Unreadable for what this file has no reason to write."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False)
    raise Unreadable(f"its entry has a value that cannot be kept: {value!r}")
