"""The source of a file with its findings in place, as HTML."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise
from pathlib import Path

from pytorch_to_triton.audit.report.elements import badge, block, code, scrolling, text
from pytorch_to_triton.audit.report.wording import evidence_of, shown, visible
from pytorch_to_triton.audit.source import lines_of
from pytorch_to_triton.schema.finding import Finding

AROUND = 5
"""Lines that are shown before and after a finding."""
WORTH_FOLDING = 10
"""Fewer lines between findings are shown as well."""

_PLAIN, _MARKED = "row", "row marked"
"""Classes of a line."""


@dataclass(frozen=True)
class LinkedFinding:
    """A finding and the name that links reach it by."""

    finding: Finding
    anchor: str


@dataclass(frozen=True)
class Stretch:
    """Lines that stand in one block of code; from 1, both ends included."""

    first: int
    last: int
    folded: bool


def annotated(file: Path, source: str | None, entries: Sequence[LinkedFinding], folder: Path) -> str:
    """The file with a card below each line that has findings; where there is no source, the cards alone."""
    lines = lines_of(source) if source is not None else []
    marked = sorted({entry.finding.line for entry in entries if 1 <= entry.finding.line <= len(lines)})
    name = shown(file, folder)
    pieces = ['<div class="source">']
    for stretch in stretches(len(lines), marked):
        pieces.append(_code(stretch, lines, marked, name))
        pieces += [card(entry) for entry in entries if entry.finding.line == stretch.last]
    for entry in entries:
        if entry.finding.line not in marked:
            pieces += [_excerpt(entry.finding, name), card(entry)]
    return "\n".join((*pieces, "</div>"))


def stretches(count: int, marked: Sequence[int]) -> Iterator[Stretch]:
    """A file of so many lines in pieces, which end at marked lines and where folding begins or ends."""
    hidden = _far(count, marked)
    for folded, run in groupby(range(1, count + 1), key=hidden.__contains__):
        first, *rest = run
        last = rest[-1] if rest else first
        cuts = [line for line in marked if first <= line < last]
        for before, end in pairwise((first - 1, *cuts, last)):
            yield Stretch(before + 1, end, folded)


def _far(count: int, marked: Sequence[int]) -> set[int]:
    """The lines that are worth folding."""
    near = {line for mark in marked for line in range(mark - AROUND, mark + AROUND + 1)}
    runs = [list(run) for is_near, run in groupby(range(1, count + 1), near.__contains__) if not is_near]
    return {line for run in runs if len(run) >= WORTH_FOLDING for line in run}


def _code(stretch: Stretch, lines: Sequence[str], marked: Container[int], name: str) -> str:
    numbers = range(stretch.first, stretch.last + 1)
    which = f"lines {stretch.first} to {stretch.last}" if len(numbers) > 1 else f"line {stretch.first}"
    rows = [_row(number, lines[number - 1], _MARKED if number in marked else _PLAIN) for number in numbers]
    shows = scrolling("pre", f"<code>{''.join(rows)}</code>", f"{name}, {which}")
    return f"<details><summary>{which.capitalize()}</summary>{shows}</details>" if stretch.folded else shows


def _excerpt(finding: Finding, name: str) -> str:
    row = _row(finding.line, finding.excerpt, _MARKED)
    return scrolling("pre", f"<code>{row}</code>", f"{name}, line {finding.line}")


def _row(number: int, line: str, kind: str) -> str:
    told = f'<span class="number">{number}</span>{escape(visible(line))}'
    return f'<span class="{kind}">{told}\n</span>'


def card(entry: LinkedFinding) -> str:
    """All that a finding says, below its line."""
    finding = entry.finding
    inside = f" in {code(finding.kernel)}" if finding.kernel else ""
    known = '<span class="soft">known to the baseline</span>' if finding.known else ""
    said = [
        f'<article class="finding" id="{entry.anchor}" data-severity="{finding.severity}"'
        f' data-category="{finding.category}" aria-labelledby="{entry.anchor}-title">',
        f'<header>{badge(finding.severity)}<h4 id="{entry.anchor}-title">'
        f'<a href="#rule-{escape(finding.rule)}">{escape(finding.rule)}</a>{inside}</h4>'
        f'<span class="soft">{finding.category}; {evidence_of(finding)}</span>{known}</header>',
        f"<p>{text(finding.message)}</p>",
    ]
    if finding.proof:
        said += ['<p class="label">Seen</p>', block(finding.proof, "What was seen")]
    said += ['<p class="label">Instead</p>', f"<p>{text(finding.suggestion)}</p>"]
    if finding.fix:
        said.append(block(finding.fix, "Code to write instead"))
    return "\n".join((*said, "</article>"))
