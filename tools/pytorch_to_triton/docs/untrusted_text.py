"""Markdown from outside made harmless: nothing hidden, nothing that runs, no open fence, no endless text."""

import re
import unicodedata
from collections.abc import Iterator

MAX_CHARACTERS = 300_000

_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor moves
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links
    r"|\x1b[ -/]*[0-~]"
)
_HIDDEN_CATEGORIES = {"Cc", "Cf", "Co", "Cs", "Cn"}
_BLANK = {*map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0))}
"""Letters, marks and symbols that show nothing, though their categories do not say so."""
_VARIATION_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_FENCE = re.compile(r"[ \t]*(`{3,}+|~{3,}+)(.*)$")
_OPENS_BLOCK = re.compile(r"^([ \t]*(?:[-*+>][ \t]*)*)(`{3,}|~{3,})", re.MULTILINE)
_TAG = re.compile(r"<(?!https?://[^\s<>]*>)(?=[A-Za-z/!?])")
_UNSAFE_LINK = re.compile(r"\]\((?!\s*<?https?://)")
_UNSAFE_REFERENCE = re.compile(r"^([ \t]*)\[(?=[^\]\n]*\]:(?!\s*<?https?://))", re.MULTILINE)
_BACKTICKS = re.compile(r"(`+)")
_URL_BREAKERS = re.compile(r"[^!-~]|[()<>\\]")
_LONGEST_RUN = 30
_LONG_RUN = re.compile(f"`{{{_LONGEST_RUN},}}")
_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def visible(text: str) -> str:
    """The text without control, format, private and blank characters and without terminal escapes."""
    text = _LINE_END.sub("\n", _ESCAPE_SEQUENCE.sub("", text))
    unwanted: dict[str, str | int | None] = {char: None for char in set(text) if _is_hidden(char)}
    unwanted.update({char: " " for char in set(text) if unicodedata.category(char) == "Zs"})
    return text.translate(str.maketrans(unwanted))


def fenced(code: str, language: str = "") -> str:
    """The code in a fence that nothing within can close. Absurdly long runs of backticks are shortened."""
    code = _LONG_RUN.sub("`" * _LONGEST_RUN, code)
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def span(code: str) -> str:
    """The code, on one line, between backticks that nothing within can close."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    marks = "`" * (longest + 1)
    padding = " " if longest else ""
    return f"{marks}{padding}{code.strip()}{padding}{marks}" if code.strip() else ""


def quoted_url(url: str) -> str:
    """The URL without characters that would end a Markdown link."""
    return _URL_BREAKERS.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), url)


def linked(label: str, url: str) -> str:
    """A Markdown link."""
    return f"[{label}]({quoted_url(url)})"


def without_fences(prose: str) -> str:
    """Prose whose lines open no fence."""
    return _OPENS_BLOCK.sub(lambda match: match[1] + "".join(f"\\{mark}" for mark in match[2]), prose)


def harmless(markdown: str, max_characters: int = MAX_CHARACTERS) -> str:
    """Markdown that can be shown and quoted: see this module's first line. Code keeps its every character.

    In prose, comments go; images, HTML and links to anything but the web lose their effect.
    """
    runs = [
        "\n".join(lines) if is_code else _defused("\n".join(lines))
        for is_code, lines in _runs(visible(markdown))
    ]
    text = "\n".join(runs).strip("\n")
    if len(text) > max_characters:
        kept = text[:max_characters].rpartition("\n")[0] or text[:max_characters]
        left_out = f"(The page goes on for {len(text) - len(kept)} characters.)"
        return f"{_closed(kept)}\n\n{left_out}\n"
    return f"{_closed(text)}\n"


def _is_hidden(char: str) -> bool:
    if char in "\n\t":
        return False
    if unicodedata.category(char) in _HIDDEN_CATEGORIES or char in _BLANK:
        return True
    return any(first <= ord(char) <= last for first, last in _VARIATION_SELECTORS)


def _runs(markdown: str) -> Iterator[tuple[bool, list[str]]]:
    """The lines in runs of code, fences included, and of prose."""
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if not fence and mark and _opens(mark):
            if lines:
                yield False, lines
            fence, lines = mark[1], [line]
        elif fence and mark and _closes(mark, fence):
            yield True, [*lines, line]
            fence, lines = "", []
        else:
            lines.append(line)
    if lines:
        yield bool(fence), lines


def _opens(mark: re.Match[str]) -> bool:
    return mark[1][0] == "~" or "`" not in mark[2]


def _closes(mark: re.Match[str], fence: str) -> bool:
    return mark[1].startswith(fence) and not mark[2].strip()


def _closed(markdown: str) -> str:
    """The text with a fence closed that was left open."""
    last = list(_runs(markdown))[-1:]
    for is_code, lines in last:
        first, end = _FENCE.match(lines[0]), _FENCE.match(lines[-1])
        if is_code and first and (len(lines) == 1 or not (end and _closes(end, first[1]))):
            return f"{markdown}\n{first[1]}"
    return markdown


def _defused(prose: str) -> str:
    pieces = _around_code_spans(_without_comments(prose))
    text = "".join(text if is_code else _inert(text) for is_code, text in pieces)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.split("\n")))


def _without_comments(prose: str) -> str:
    kept, at = [], 0
    while (start := prose.find("<!--", at)) >= 0 and (end := prose.find("-->", start)) >= 0:
        kept.append(prose[at:start])
        at = end + len("-->")
    return "".join([*kept, prose[at:]])


def _around_code_spans(prose: str) -> Iterator[tuple[bool, str]]:
    """Prose and code spans in turn; backticks without a partner on their line are prose."""
    for line in prose.splitlines(keepends=True):
        parts = _BACKTICKS.split(line)  # text, backticks, text, backticks, ..., text
        last = {parts[i]: i for i in range(1, len(parts), 2)}
        i = 0
        while i < len(parts):
            if i % 2 and last[parts[i]] > i:
                end = parts.index(parts[i], i + 2)
                yield True, "".join(parts[i : end + 1])
                i = end + 1
            else:
                yield False, parts[i]
                i += 1


def _inert(prose: str) -> str:
    prose = prose.replace("![", "!\\[")
    prose = _UNSAFE_LINK.sub(r"]\\(", prose)
    prose = _UNSAFE_REFERENCE.sub(r"\1\\[", prose)
    return _TAG.sub(r"\\<", prose)
