"""reStructuredText as Markdown, as far as Triton's documentation uses it."""

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pytorch_to_triton.docs.untrusted_text import fenced, linked, span, without_fences

_MAX_DEPTH = 6
"""Directives nested deeper than this are quoted as they are."""

_ADORNMENT = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_EXPLICIT = re.compile(r"( *)\.\.(?: +(.*))?$")
_DIRECTIVE = re.compile(r"(?:\|[^|]+\| +)?([A-Za-z][\w:+.-]*?)::(?: +(.*))?$")
_TARGET = re.compile(r"_`?([^:`]+)`?: +(https?://\S+)$")
_CITATION = re.compile(r"\[([^\]]+)\] +(.*)$")
_OPTION = re.compile(r" *:[\w-]+:")
_TABLE = re.compile(r" *(?:\+(?:[-=]+\+)+|=+(?: +=+)+) *$")
_BULLET = re.compile(r" *(?:(?:[-*+]|\d{1,3}[.)]|#\.) +)?")
_INLINE = re.compile(
    r"``(?P<literal>(?:[^`\n]|`(?!`))+)``"
    r"|:(?P<role>[\w:+.-]{1,40}):`(?P<text>[^`]+)`"
    r"|`(?P<label>[^`<]*)<(?P<url>[^`>]+)>`__?"
    r"|`(?P<named>[^`]+)`__?"
    r"|`(?P<plain>[^`]+)`"
    r"|(?P<citation>\[[\w#*.-]{1,60}\])_"
    r"|\\(?P<gap>[ \n])"
)
_PROSE_ROLES = {
    "doc",
    "ref",
    "numref",
    "term",
    "abbr",
    "title",
    "sub",
    "sup",
    "download",
    "strong",
    "emphasis",
}
_CODE = {"code-block", "code", "sourcecode", "parsed-literal", "prompt", "testcode", "doctest", "literal"}
_ADMONITIONS = {
    "note", "warning", "tip", "important", "caution", "attention", "hint", "danger", "error", "seealso",
    "admonition", "deprecated", "versionadded", "versionchanged",
}  # fmt: skip
_LEFT_OUT = {
    "image", "figure", "raw", "include", "literalinclude", "index", "contents", "highlight", "role", "meta",
    "default-role", "plot", "video", "sectnum", "replace", "unicode", "date",
}  # fmt: skip
_TABLES = {"table", "list-table", "csv-table"}
_LANGUAGES = {"python3": "python", "pycon": "python", "text": "", "none": "", "console": "bash", "sh": "bash"}

_DOCSTRING = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[rRuU]?(\"\"\"|''')(.*?)\1", re.DOTALL)
_CELL = re.compile(r"#\s?%%(.*)$|#{20,}\s*$")


@dataclass(frozen=True)
class _Page:
    """What holds for a whole page."""

    levels: list[str] = field(default_factory=list)
    """Adornments of headings, in the order in which they were met: the first one is level 1."""
    targets: dict[str, str] = field(default_factory=dict)
    """URLs of named links, by the name in lower case."""
    module: list[str] = field(default_factory=list)
    """The current module, at most one."""
    depth: int = 0


def from_restructured_text(text: str) -> str:
    """A page of reStructuredText as Markdown. What is not understood stays as it is written."""
    return _converted(text, _Page(targets=_targets(text)))


def from_tutorial(source: str) -> str:
    """A Python file as Markdown: the docstring and comment blocks as prose, the code between them in fences.

    Comment blocks begin with a line `# %%` or a long line of `#`.
    """
    docstring = _DOCSTRING.match(source)
    prose = textwrap.dedent(docstring[2]) if docstring else ""
    rest = source[docstring.end() :] if docstring else source
    page = _Page(targets=_targets(source.replace("\n# ", "\n")))
    parts = [_converted(prose, page)]
    for comment, code in _cells(rest):
        parts.append(_converted(comment, page))
        if code.strip():
            parts.append(fenced(code.strip("\n"), "python"))
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def _cells(source: str) -> list[tuple[str, str]]:
    """The comment that begins each cell, and the code after it."""
    comment: list[str] = []
    code: list[str] = []
    cells = [(comment, code)]
    in_comment = False
    for line in source.split("\n"):
        mark = _CELL.match(line)
        if mark:
            comment, code = [(mark[1] or "").strip()], []
            cells.append((comment, code))
            in_comment = True
        elif in_comment and line.startswith("#"):
            comment.append(line[1:].removeprefix(" "))
        else:
            in_comment = False
            code.append(line)
    return [("\n".join(comment), "\n".join(code)) for comment, code in cells]


def _targets(text: str) -> dict[str, str]:
    marks = (_EXPLICIT.match(line) for line in text.split("\n"))
    found = (_TARGET.match(mark[2] or "") for mark in marks if mark)
    return {target[1].lower(): target[2] for target in found if target}


def _converted(text: str, page: _Page) -> str:
    lines = text.expandtabs().split("\n")
    parts: list[str] = []
    at = 0
    while at < len(lines):
        for read in _READERS:
            found = read(lines, at, page)
            if found is not None:
                markdown, at = found
                parts.append(markdown)
                break
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


_Read = tuple[str, int]
"""Markdown, and the index of the first line that it does not cover."""


def _blank(lines: list[str], at: int, page: _Page) -> _Read | None:
    return None if lines[at].strip() else ("", at + 1)


def _heading(lines: list[str], at: int, page: _Page) -> _Read | None:
    first, second, third = [*lines[at : at + 3], "", ""][:3]
    over = _ADORNMENT.match(first)
    if over and second.strip() and third.rstrip() == first.rstrip():
        return _titled(second, f"{over[1]}{over[1]}", page), at + 3
    under = _ADORNMENT.match(second)
    if under and first[:1].strip() and not _EXPLICIT.match(first):
        return _titled(first, under[1], page), at + 2
    # A line across the page, or an adornment that adorns nothing.
    return ("", at + 1) if over else None


def _titled(title: str, adornment: str, page: _Page) -> str:
    if adornment not in page.levels:
        page.levels.append(adornment)
    level = min(6, page.levels.index(adornment) + 1)
    return f"\n{'#' * level} {_inline(title.strip(), page)}\n"


def _explicit(lines: list[str], at: int, page: _Page) -> _Read | None:
    mark = _EXPLICIT.match(lines[at])
    if mark is None:
        return None
    body, end = _indented(lines, at + 1, len(mark[1]))
    what = mark[2] or ""
    directive, citation = _DIRECTIVE.match(what), _CITATION.match(what)
    if directive:
        markdown = _directive(directive[1].lower(), directive[2] or "", body, page)
        return f"\n{textwrap.indent(markdown, mark[1])}\n", end
    if citation:
        return _inline(f"[{citation[1]}] {' '.join([citation[2], *body.split()])}", page) + "\n", end
    return "", end


def _directive(name: str, argument: str, body: str, page: _Page) -> str:
    options, body = _without_options(body)
    if name in _LEFT_OUT:
        return ""
    if name in _CODE:
        return fenced(body, _LANGUAGES.get(argument, argument if re.fullmatch(r"[\w+-]+", argument) else ""))
    if name == "math":
        return fenced("\n".join(filter(None, [argument, body])), "math")
    if name in ("currentmodule", "module"):
        page.module[:] = [argument]
        return ""
    if name in ("autosummary", "toctree"):
        prefix = f"{page.module[0]}." if name == "autosummary" and page.module else ""
        entries = [_without_target(line.strip()) for line in body.split("\n") if line.strip()]
        return "" if ":hidden:" in options else "\n".join(f"- {span(prefix + entry)}" for entry in entries)
    if name in _TABLES or page.depth >= _MAX_DEPTH:
        return fenced(body)
    inner = _converted(body, replace(page, depth=page.depth + 1))
    if name in _ADMONITIONS:
        return f"**{name.capitalize()}:** {_inline(argument, page)}".rstrip() + f"\n\n{inner}"
    return f"{_inline(argument, page)}\n\n{inner}"


def _without_options(body: str) -> tuple[str, str]:
    lines = body.split("\n")
    count = next((i for i, line in enumerate(lines) if not _OPTION.match(line)), len(lines))
    return "\n".join(lines[:count]), "\n".join(lines[count:]).strip("\n")


def _table(lines: list[str], at: int, page: _Page) -> _Read | None:
    if not _TABLE.match(lines[at]):
        return None
    end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
    return f"\n{fenced(textwrap.dedent(chr(10).join(lines[at:end])))}\n", end


def _doctest(lines: list[str], at: int, page: _Page) -> _Read | None:
    if not lines[at].lstrip().startswith(">>> "):
        return None
    end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
    return f"\n{fenced(textwrap.dedent(chr(10).join(lines[at:end])), 'python')}\n", end


def _paragraph(lines: list[str], at: int, page: _Page) -> _Read | None:
    """Lines up to an empty one, lists included; after a double colon, the indented block as code."""
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _EXPLICIT.match(lines[end]):
        end += 1
    text = "\n".join(line.rstrip() for line in lines[at:end])
    if not text.endswith("::"):
        return _inline(text, page), end
    marked = _BULLET.match(lines[end - 1])
    indent = marked.end() if marked else 0
    code, end = _indented(lines, end, indent)
    text = text[:-2].rstrip() if text.endswith((" ::", "\n::")) or text == "::" else text[:-1]
    block = textwrap.indent(fenced(code), " " * indent) if code else ""
    return f"{_inline(text, page)}\n\n{block}\n", end


_READERS: tuple[Callable[[list[str], int, _Page], _Read | None], ...] = (
    _blank, _explicit, _table, _heading, _doctest, _paragraph,
)  # fmt: skip
"""The first that understands a line has it; the last understands every line."""


def _indented(lines: list[str], at: int, indent: int) -> tuple[str, int]:
    """The block that is indented deeper than `indent`, dedented, and the index of the line after it."""
    end = at
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" " * (indent + 1))):
        end += 1
    return textwrap.dedent("\n".join(lines[at:end])).strip("\n").rstrip(), end


def _inline(text: str, page: _Page) -> str:
    def written(found: re.Match[str]) -> str:
        groups = found.groupdict()
        if groups["gap"] is not None or groups["citation"] is not None:
            return groups["citation"] or ""
        if groups["url"] is not None:
            label, url = " ".join(groups["label"].split()), "".join(groups["url"].split())
            return linked(label or url, url) if url.startswith(("http://", "https://")) else label
        if groups["named"] is not None:
            url = page.targets.get(groups["named"].lower(), "")
            return linked(groups["named"], url) if url else groups["named"]
        return _interpreted(groups["role"] or "", groups["text"] or groups["literal"] or groups["plain"])

    return _INLINE.sub(written, without_fences(text))


def _interpreted(role: str, text: str) -> str:
    text = " ".join(text.split())
    if role == "math":
        return f"${text}$"
    if role and role not in {"code", "literal"}:
        text = _without_target(text)
        text = text.rpartition(".")[2] if text.startswith("~") else text
    return text if role.rpartition(":")[2] in _PROSE_ROLES else span(text)


def _without_target(text: str) -> str:
    """`load` of `load <triton.language.load>`."""
    opening = text.find("<", text.rfind(">", 0, -1) + 1) if text.endswith(">") else -1
    return text[:opening].rstrip() if opening >= 0 else text
