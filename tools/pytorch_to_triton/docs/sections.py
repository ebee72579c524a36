"""A page of Markdown as sections under their headings, and as passages short enough to be quoted."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

PASSAGE_CHARACTERS = 1500
"""A passage has at most this many, unless one fenced block or one line is longer by itself."""

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"[ \t]*(`{3,}+(?!.*`)|~{3,}+)(.*)$")
"""Backticks with another one after them are code in a line."""


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


class MarkdownLine(NamedTuple):
    """One line of Markdown; `fenced` where it belongs to a fenced block, the fence's own lines included."""

    text: str
    fenced: bool


def lines_of(markdown: str) -> Iterator[MarkdownLine]:
    """The lines, distinguished by fences; a fence that is never closed lasts to the end."""
    fence = ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        closes = fence and mark and mark[1].startswith(fence) and not mark[2].strip()
        if mark and not fence:
            fence = mark[1]
        yield MarkdownLine(line, fenced=bool(fence))
        if closes:
            fence = ""


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


def _kind(line: MarkdownLine) -> tuple[bool, bool]:
    """Whether a line is code, and whether it is anything: what is so alike side by side belongs together."""
    return line.fenced, line.fenced or bool(line.text.strip())


def _parts(markdown: str, characters: int) -> Iterator[str]:
    """Paragraphs and fenced blocks in order, the lines of long paragraphs in as few parts as will do."""
    for (is_fenced, is_text), lines in groupby(lines_of(markdown), _kind):
        part = ""
        for line, _ in lines:
            if part and not is_fenced and len(part) + 1 + len(line) > characters:
                yield part
                part = line
            else:
                part = f"{part}\n{line}" if part else line
        if is_text:
            yield part
