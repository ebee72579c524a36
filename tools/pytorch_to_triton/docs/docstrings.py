"""Triton's docstrings, which are reStructuredText, as Markdown.

Only what occurs in them is known: roles, links, fields (`:param x:`), code blocks, admonitions, underlined
titles. Anything else is taken as prose.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FIELD = re.compile(r":(param|type|ivar|returns?|rtype|note|raises?)(?: +([\w*, ]+))?: *(.*)$")
_DIRECTIVE = re.compile(r"\.\. *([\w-]+):: *(.*)$")
_UNDERLINE = re.compile(r"([=~*^#+\"-])\1{2,}$")
_ROLE = re.compile(r":(?:py:)?[a-z]+:`~?([^`]+)`")
_LINK = re.compile(r"`([^`<]+?)\s*<([^`>]+)>`__?")
_CODE = ("code-block", "code", "sourcecode", "math")
_ADMONITIONS = ("note", "warning", "tip", "important")
_SILENT = ("highlight", "rubric")


@dataclass(frozen=True)
class Field:
    """`:param mask: text`, with its continuation lines."""

    kind: str
    name: str
    text: str


@dataclass(frozen=True)
class Docstring:
    """A docstring taken apart."""

    prose: str
    """Markdown."""
    fields: tuple[Field, ...]

    def about(self, parameter: str) -> str:
        """The description of a parameter, in one paragraph; empty where it is not mentioned."""
        texts = [f.text for f in self.fields if f.kind in ("param", "ivar") and parameter in _names(f)]
        return _sentence(" ".join(texts))

    def type_of(self, parameter: str) -> str:
        """The type that is given in words; empty where none is."""
        return next((f.text for f in self.fields if f.kind == "type" and parameter in _names(f)), "")

    @property
    def described(self) -> tuple[str, ...]:
        """The parameters that it describes, in its order."""
        return tuple(name for f in self.fields if f.kind in ("param", "ivar") for name in _names(f))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is returned, raised or noted, a paragraph each."""
        labels = {"return": "Returns", "returns": "Returns", "note": "Note", "raise": "Raises"}
        labels |= {"raises": "Raises", "rtype": "Type returned"}
        labelled = [(labels[f.kind], f.name, f.text) for f in self.fields if f.kind in labels and f.text]
        return tuple(f"**{label}{' ' + name if name else ''}:** {text}" for label, name, text in labelled)


def read_docstring(text: str) -> Docstring:
    """A docstring without its indentation, as `inspect.getdoc` gives it; roles and links become Markdown."""
    lines = text.expandtabs().splitlines()
    prose: list[str] = []
    fields: list[Field] = []
    at = 0
    while at < len(lines):
        stop = at + 1
        if field := _FIELD.match(lines[at].strip()):
            stop = _end_of_indented(lines, at)
            parts = [field[3], *(line.strip() for line in lines[at + 1 : stop])]
            fields.append(Field(field[1], field[2] or "", _inline(" ".join(filter(None, parts)))))
        elif lines[at].lstrip().startswith(".."):
            stop = _end_of_indented(lines, at)
            prose += _directive(lines[at:stop])
        elif lines[at].lstrip().startswith(">>>"):
            stop = _end_of_paragraph(lines, at)
            prose += _fence(lines[at:stop], "python")
        elif stop < len(lines) and lines[at].strip() and _UNDERLINE.match(lines[stop].strip()):
            prose += ["", f"**{lines[at].strip()}**", ""]
            stop += 1
        else:
            # Indented prose would be code in Markdown.
            prose.append(lines[at].strip())
        at = stop
    # A role may go over the end of a line; code stays as it is.
    parts = re.split(r"(^```.*?^```$)", "\n".join(prose), flags=re.DOTALL | re.MULTILINE)
    text = "".join(part if part.startswith("```") else _inline(part) for part in parts)
    return Docstring(re.sub(r"\n{3,}", "\n\n", text).strip(), tuple(fields))


def _end_of_indented(lines: Sequence[str], start: int) -> int:
    """Continuation lines are indented more; an empty line ends it unless more of those follow."""
    depth = _depth(lines[start])
    stop = start + 1
    for number in range(start + 1, len(lines)):
        if lines[number].strip() and _depth(lines[number]) <= depth:
            break
        if lines[number].strip():
            stop = number + 1
    return stop


def _end_of_paragraph(lines: Sequence[str], start: int) -> int:
    return next((n for n in range(start, len(lines)) if not lines[n].strip()), len(lines))


def _directive(lines: Sequence[str]) -> Iterator[str]:
    """A directive with its indented content; a comment is dropped."""
    directive = _DIRECTIVE.match(lines[0].strip())
    if directive is None or directive[1] in _SILENT:
        return
    content = [line for line in lines[1:] if not re.match(r" *:[a-z-]+:", line)]
    if directive[1] in _CODE:
        yield from _fence(content, "text" if directive[1] == "math" else directive[2] or "python")
    elif directive[1] in _ADMONITIONS:
        text = " ".join(filter(None, (directive[2], *(line.strip() for line in content))))
        yield from ("", f"**{directive[1].capitalize()}:** {text}", "")


def _fence(lines: Sequence[str], language: str) -> Iterator[str]:
    code = textwrap.dedent("\n".join(lines)).strip("\n")
    if code.strip():
        yield from ("", f"```{language}", code, "```", "")


def _inline(text: str) -> str:
    """Roles, links and double backticks as Markdown."""
    text = _LINK.sub(r"[\1](\2)", _ROLE.sub(r"`\1`", text))
    return text.replace("``", "`")


def _names(field: Field) -> list[str]:
    """The last word of each name: `:param int x, y:` names x and y."""
    return [part.split()[-1].lstrip("*") for part in field.name.split(",") if part.strip()]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("." if text and text[-1] not in ".!?:`)" else "")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
