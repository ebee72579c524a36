"""Triton's docstrings, which are reStructuredText, as Markdown.

Only what occurs in them is known: roles, links, fields (`:param x:`), code blocks, admonitions, underlined
titles. Anything else is taken as prose. docutils would take seconds to read all 200 of them.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

_FIELD = re.compile(r":(param|type|ivar|returns?|rtype|note|raises?)(?: +([\w*, ]+))?: *(.*)$")
_LABELS = {
    "return": "Returns", "returns": "Returns", "note": "Note", "raise": "Raises", "raises": "Raises",
    "rtype": "Type returned",
}  # fmt: skip
_DIRECTIVE = re.compile(r"\.\. *([\w-]+):: *(.*)$")
_OPTION = re.compile(r" *:[a-z-]+:")
_UNDERLINE = re.compile(r"([=~*^#+\"-])\1{2,}$")
_ROLE = re.compile(r":(?:py:)?[a-z]+:`~?([^`]+)`")
_LINK = re.compile(r"`([^`<]+?)\s*<([^`>]+)>`__?")
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_CODE = ("code-block", "code", "sourcecode", "math")
_ADMONITIONS = ("note", "warning", "tip", "important")


@dataclass(frozen=True)
class Docstring:
    """A docstring taken apart, all of it Markdown."""

    prose: str
    parameters: Mapping[str, str]
    """Each described parameter with its description in one paragraph, in the docstring's order."""
    types: Mapping[str, str]
    """The types that are given in words."""
    notes: tuple[str, ...]
    """What is returned, raised or noted, a paragraph each."""


def read_docstring(text: str) -> Docstring:
    """A docstring without its indentation, as `inspect.getdoc` gives it."""
    lines = text.expandtabs().splitlines()
    prose: list[str] = []
    parameters: dict[str, str] = {}
    types: dict[str, str] = {}
    notes: list[str] = []
    while lines:
        line, size = lines[0].strip(), 1
        if field := _FIELD.match(line):
            kind, names, beginning = field.groups(default="")
            size = _size_of_indented(lines)
            meaning = _inline(" ".join(filter(None, [beginning, *map(str.strip, lines[1:size])])))
            if kind in _LABELS:
                notes += [f"**{f'{_LABELS[kind]} {names}'.strip()}:** {meaning}"] if meaning else []
            for name in _names(names) if kind == "type" else ():
                types.setdefault(name, meaning)
            for name in _names(names) if kind in ("param", "ivar") else ():
                parameters.setdefault(name, _sentence(meaning))
        elif line.startswith(".."):
            size = _size_of_indented(lines)
            prose += _directive(line, lines[1:size])
        elif line.startswith(">>>"):
            size = next((number for number, later in enumerate(lines) if not later.strip()), len(lines))
            prose += _fence(lines[:size], "python")
        elif line and len(lines) > 1 and _UNDERLINE.match(lines[1].strip()):
            size = 2
            prose += ["", f"**{line}**", ""]
        else:
            prose.append(line)  # indented prose would be code in Markdown
        lines = lines[size:]
    # A role may go over the end of a line; code stays as it is.
    parts = _FENCED.split("\n".join(prose))
    text = "".join(part if part.startswith("```") else _inline(part) for part in parts)
    return Docstring(re.sub(r"\n{3,}", "\n\n", text).strip(), parameters, types, tuple(notes))


def _size_of_indented(lines: Sequence[str]) -> int:
    """The first line with those after it that are indented more, whatever empty lines are between."""
    depth = len(lines[0]) - len(lines[0].lstrip())
    rest = takewhile(lambda line: not line[: depth + 1].strip(), lines[1:])
    return 1 + len("\n".join(rest).rstrip().splitlines())


def _directive(line: str, content: Sequence[str]) -> Iterator[str]:
    """A directive with its indented content; a comment, and what is for the site alone, is dropped."""
    name, argument = match.groups() if (match := _DIRECTIVE.match(line)) else ("", "")
    content = [row for row in content if not _OPTION.match(row)]
    if name in _CODE:
        yield from _fence(content, "text" if name == "math" else argument or "python")
    elif name in _ADMONITIONS:
        text = " ".join(filter(None, (argument, *map(str.strip, content))))
        yield from ("", f"**{name.capitalize()}:** {text}", "")


def _fence(lines: Sequence[str], language: str) -> Iterator[str]:
    code = textwrap.dedent("\n".join(lines)).strip("\n")
    if code.strip():
        yield from ("", f"```{language}", code, "```", "")


def _inline(text: str) -> str:
    """Roles, links and double backticks as Markdown."""
    return _LINK.sub(r"[\1](\2)", _ROLE.sub(r"`\1`", text)).replace("``", "`")


def _names(names: str) -> Iterator[str]:
    """The last word of each: `int x, y` names x and y."""
    return (part.split()[-1].lstrip("*") for part in names.split(",") if part.strip())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("." if text and text[-1] not in ".!?:`)" else "")
