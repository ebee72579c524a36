"""One entry of a JSON text, changed without touching the rest.

Comments and commas before a closing bracket are understood: editors allow them in their settings.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from pytorch_to_triton_server.install.unreadable import Unreadable

Json = dict[str, Any]
_NO_VALUE = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Member:
    """A key of an object and its value, as places in the text."""

    key: str
    start: int
    value_start: int
    end: int


def read(text: str) -> Json:
    """The object in the text; that of an empty one is empty. Raises Unreadable."""
    plain = _plain(text)
    if not plain.strip():
        return {}
    try:
        value = json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable("it does not hold a JSON object")
    return value


def with_entry(text: str, section: str, key: str, entry: Json) -> str:
    """The text with an entry of a section set; the section is made if it is not there. Raises Unreadable."""
    if not read(text):
        if text.strip() and _plain(text).strip() != "{}":
            raise Unreadable("it has comments and no entry to put this one beside")
        return json.dumps({section: {key: entry}}, indent=2, ensure_ascii=False) + "\n"
    indent = _indent(text)
    top = _open(text)
    found = _member(text, top, section)
    if found is None:
        return _inserted(text, top, indent, section, {key: entry})
    if _plain(text)[found.value_start] != "{":
        raise Unreadable(f'its "{section}" is not an object')
    known = _member(text, found.value_start, key)
    if known is None:
        return _inserted(text, found.value_start, indent, key, entry)
    rendered = _rendered(entry, indent, _indent_at(text, known.start), text)
    return text[: known.value_start] + rendered + text[known.end :]


def without_entry(text: str, section: str, key: str) -> str:
    """The text without an entry of a section, and without the section if that is empty then."""
    found = _member(text, _open(text), section)
    if found is None or _plain(text)[found.value_start] != "{":
        return text
    removed = _without(text, found.value_start, key)
    left = read(removed).get(section)
    return _without(removed, _open(removed), section) if left == {} and removed != text else removed


def _plain(text: str) -> str:
    """The text as strict JSON of the same length: what is no value is blanks."""

    def blank(found: re.Match[str]) -> str:
        return found[1] or re.sub(r"[^\n]", " ", found[0])

    return _LAST_COMMA.sub(blank, _NO_VALUE.sub(blank, text.replace("\ufeff", " ")))


def _open(text: str) -> int:
    return _plain(text).index("{")


def _members(text: str, opening: int) -> list[Member]:
    """The members of the object that opens at a place."""
    plain, members = _plain(text), []
    at = _skipped(plain, opening + 1)
    while plain[at] != "}":
        key, end = _DECODER.raw_decode(plain, at)
        start, value_start = at, _skipped(plain, _skipped(plain, end) + 1)
        _, end = _DECODER.raw_decode(plain, value_start)
        members.append(Member(key, start, value_start, end))
        at = _skipped(plain, end)
        if plain[at] == ",":
            at = _skipped(plain, at + 1)
    return members


def _member(text: str, opening: int, key: str) -> Member | None:
    return next((member for member in _members(text, opening) if member.key == key), None)


def _skipped(plain: str, at: int) -> int:
    while plain[at].isspace():
        at += 1
    return at


def _inserted(text: str, opening: int, indent: str, key: str, value: Json) -> str:
    """As the first member: comments stay beside what they speak of."""
    new_line = _new_line(text)
    outer = _indent_at(text, opening)
    inner = outer + indent
    rest = text[opening + 1 :]
    member = f"{json.dumps(key)}: {_rendered(value, indent, inner, text)}"
    head = text[: opening + 1] + new_line + inner + member
    if not _members(text, opening):
        return head + (
            rest if rest.lstrip(" \t").startswith(("\n", "\r")) else new_line + outer + rest.lstrip()
        )
    on_next_line = rest.lstrip(" \t").startswith(("\n", "\r", "//", "/*"))
    return head + "," + (rest if on_next_line else new_line + inner + rest.lstrip(" \t"))


def _without(text: str, opening: int, key: str) -> str:
    """The text without a member of the object that opens at a place."""
    members = _members(text, opening)
    index = next((i for i, member in enumerate(members) if member.key == key), None)
    if index is None:
        return text
    member, plain = members[index], _plain(text)
    start, end = member.start, member.end
    after = re.match(r"[ \t]*,", text[end:])
    if after:
        end += after.end()
    line_start = text.rfind("\n", 0, start) + 1
    rest_of_line = re.match(r"[ \t]*\r?\n", text[end:])
    if not text[line_start:start].strip() and rest_of_line:
        start, end = line_start, end + rest_of_line.end()
    elif after:
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    text = text[:start] + text[end:]
    if index == len(members) - 1 and index:  # the comma before it is one too many
        comma = plain.index(",", members[index - 1].end)
        text = text[:comma] + text[comma + 1 :]
    return text


def _rendered(value: Json, indent: str, at: str, text: str) -> str:
    """A value as it stands behind a key that is indented by `at`."""
    lines = json.dumps(value, indent=indent, ensure_ascii=False).split("\n")
    return (_new_line(text) + at).join(lines)


def _indent(text: str) -> str:
    found = re.search(r'\n([ \t]+)"', text)
    return found[1] if found else "  "


def _indent_at(text: str, place: int) -> str:
    """How the line of a place is indented."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _new_line(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
