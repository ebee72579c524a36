"""One entry of a JSON text, changed without touching the rest.

Comments and commas before a closing bracket are understood: editors allow them in their settings.
"""

import json
import re
from typing import Any, NamedTuple

Json = dict[str, Any]
_NO_VALUE = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')
_DECODER = json.JSONDecoder()


class Member(NamedTuple):
    """A member of an object, as places in the text."""

    start: int
    value_start: int
    end: int


def read(text: str) -> Json:
    """The object in the text; that of an empty one is empty. Raises ValueError."""
    try:
        value = json.loads(_plain(text).strip() or "{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("it does not hold a JSON object")
    return value


def with_entry(text: str, section: str, key: str, entry: Json) -> str:
    """The text with an entry of a section set; the section is made if it is not there. Raises ValueError."""
    if not read(text):
        if text.strip() and _plain(text).strip() != "{}":
            raise ValueError("it has comments and no entry to put this one beside")
        return json.dumps({section: {key: entry}}, indent=2, ensure_ascii=False) + "\n"
    top = _plain(text).index("{")
    servers = _members(text, top).get(section)
    if servers is None:
        return _insert(text, top, section, {key: entry})
    known = _members(text, servers.value_start).get(key)
    if known is None:
        return _insert(text, servers.value_start, key, entry)
    value = _render(text, entry, _indent_at(text, known.start))
    return text[: known.value_start] + value + text[known.end :]


def without_entry(text: str, section: str, key: str) -> str:
    """The text without an entry of a section, and without the section if that is empty then."""
    top = _plain(text).index("{")
    text = _without(text, _members(text, top)[section].value_start, key)
    return text if read(text)[section] else _without(text, top, section)


def _plain(text: str) -> str:
    """The text as strict JSON of the same length: what is no value is blanks."""

    def blank(match: re.Match[str]) -> str:
        return match[1] or re.sub(r"[^\n]", " ", match[0])

    return _LAST_COMMA.sub(blank, _NO_VALUE.sub(blank, text.replace("\ufeff", " ")))


def _members(text: str, opening: int) -> dict[str, Member]:
    """The members of the object that opens at a place, by their keys."""
    plain, members = _plain(text), {}

    def skipped(at: int) -> int:
        return at + len(plain[at:]) - len(plain[at:].lstrip())

    at = skipped(opening + 1)
    while plain[at] != "}":
        key, end = _DECODER.raw_decode(plain, at)
        value_start = skipped(skipped(end) + 1)  # behind the colon
        _, end = _DECODER.raw_decode(plain, value_start)
        members[key] = Member(at, value_start, end)
        at = skipped(end)
        at = skipped(at + 1) if plain[at] == "," else at
    return members


def _insert(text: str, opening: int, key: str, value: Json) -> str:
    """As the first member: comments stay beside what they speak of."""
    outer = _indent_at(text, opening)
    inner = outer + _indent(text)
    head = f"{text[: opening + 1]}{inner}{json.dumps(key)}: {_render(text, value, inner)}"
    rest = text[opening + 1 :].lstrip(" \t")
    if not _members(text, opening):
        return head + (rest if rest.startswith(("\n", "\r")) else outer + rest)
    has_own_line = rest.startswith(("\n", "\r", "//", "/*"))
    return head + "," + (rest if has_own_line else inner + rest)


def _without(text: str, opening: int, key: str) -> str:
    """The text without a member of the object that opens at a place."""
    members = _members(text, opening)
    before = list(members)[: list(members).index(key)]
    start, _, end = members[key]
    rest = re.sub(r"\A[ \t]*,[ \t]*", "", text[end:])
    is_last = key == list(members)[-1]
    head, rest_of_line = text[:start], re.match(r"[ \t]*\r?\n", rest)
    if rest_of_line and not head.rpartition("\n")[2].strip():  # lines of its own
        head, rest = head.rpartition("\n")[0] + "\n", rest[rest_of_line.end() :]
    if is_last and before:  # the comma before it is one too many
        comma = _plain(text).index(",", members[before[-1]].end)
        head = head[:comma] + head[comma + 1 :]
    return head + rest


def _render(text: str, value: Json, new_line: str) -> str:
    """A value as it stands behind a key; `new_line` begins the key's line."""
    return new_line.join(json.dumps(value, indent=_indent(text), ensure_ascii=False).split("\n"))


def _indent(text: str) -> str:
    """By which objects in the text are indented."""
    match = re.search(r'\n([ \t]+)"', text)
    return match[1] if match else "  "


def _indent_at(text: str, place: int) -> str:
    """What begins a line like that of a place: the end of the line before it, and its indentation."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return ("\r\n" if "\r\n" in text else "\n") + line[: len(line) - len(line.lstrip(" \t"))]
