"""A page of Markdown as sections under their headings, and as passages short enough to be quoted."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PASSAGE_CHARACTERS = 1500
"""A passage has at most this many, unless one fenced block or one line is longer by itself."""

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"[ \t]*(`{3,}+|~{3,}+)(.*)$")


_TITLE = re.compile(r"\n*# (.+)")
_TITLE_CHARACTERS = 200


@dataclass(frozen=True)
class Section:
    """What stands under one heading, up to the next heading of any level."""

    headings: tuple[str, ...]
    """From the page's title down to its own; empty for text above the first heading."""
    text: str
    """Markdown without the heading's own line."""

    @property
    def path(self) -> str:
        """The headings below the title, as a reader names the section; empty for the page's beginning."""
        return " > ".join(self.headings[1:])


@dataclass(frozen=True)
class MarkdownLine:
    """One line of Markdown; `fenced` where it belongs to a fenced block, the fence's own lines included."""

    text: str
    fenced: bool


def lines_of(markdown: str) -> Iterator[MarkdownLine]:
    """The lines, distinguished by fences; a fence that is never closed lasts to the end."""
    fence = ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if not fence:
            # Of backticks, an opening fence has none after it: that would be code in a line.
            opens = mark is not None and not (mark[1][0] == "`" and "`" in mark[2])
            fence = mark[1] if mark is not None and opens else ""
            yield MarkdownLine(line, bool(fence))
        else:
            if mark is not None and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            yield MarkdownLine(line, fenced=True)


def sections_of(markdown: str) -> tuple[Section, ...]:
    """The sections in their order; a heading without text of its own counts. Headings in code are none."""
    sections: list[Section] = []
    open_headings: list[tuple[int, str]] = []
    text: list[str] = []

    def close() -> None:
        body = "\n".join(text).strip("\n")
        if open_headings or body.strip():
            sections.append(Section(tuple(title for _, title in open_headings), body))
        text.clear()

    for line in lines_of(markdown):
        heading = None if line.fenced else _HEADING.match(line.text)
        if heading is None:
            text.append(line.text)
            continue
        close()
        level = len(heading[1])
        while open_headings and open_headings[-1][0] >= level:
            open_headings.pop()
        open_headings.append((level, heading[2].replace("`", "")))
    close()
    return tuple(sections)


def title_of(markdown: str) -> str:
    """The heading of level 1 that a page starts with; empty where it starts with anything else."""
    title = _TITLE.match(markdown)
    return title[1].replace("`", "").strip()[:_TITLE_CHARACTERS] if title else ""


def below(sections: Sequence[Section], headings: tuple[str, ...]) -> str:
    """The Markdown of a section with its subsections, its headings written again."""
    parts = []
    for section in sections:
        if section.headings[: len(headings)] == headings and section.headings:
            parts.append(f"{'#' * len(section.headings)} {section.headings[-1]}\n\n{section.text}".rstrip())
    return "\n\n".join(parts)


def cut(markdown: str, characters: int = PASSAGE_CHARACTERS) -> list[str]:
    """The text in pieces of at most `characters`, cut at paragraphs, a long paragraph or table at its lines.

    A fenced block is never split, whatever its length. Nothing but empty lines is lost.
    """
    pieces: list[str] = []
    for part in _parts(markdown, characters):
        if pieces and len(pieces[-1]) + len(part) + 2 <= characters:
            pieces[-1] += f"\n\n{part}"
        else:
            pieces.append(part)
    return pieces


def _parts(markdown: str, characters: int) -> Iterator[str]:
    """Paragraphs and fenced blocks in order, the lines of long paragraphs in as few parts as will do."""
    for block in _blocks(markdown):
        part = ""
        for line in block:
            if part and not line.fenced and len(part) + 1 + len(line.text) > characters:
                yield part
                part = line.text
            else:
                part = f"{part}\n{line.text}" if part else line.text
        yield part


def _blocks(markdown: str) -> list[list[MarkdownLine]]:
    """The lines between empty ones; code and prose are split even where no empty line does it."""
    blocks: list[list[MarkdownLine]] = [[]]
    for line in lines_of(markdown):
        if not line.fenced and not line.text.strip():
            blocks.append([])
            continue
        if blocks[-1] and blocks[-1][-1].fenced != line.fenced:
            blocks.append([])
        blocks[-1].append(line)
    return [block for block in blocks if block]
