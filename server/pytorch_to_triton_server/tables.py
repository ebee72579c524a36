"""Tables on a terminal; where it is too narrow for one, its rows one below the other."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_PLAIN_WIDTH = 120
"""Of what a file or a program reads."""
_LEGIBLE = 16
"""A column of text may be wrapped to this width, no further."""
_GAP = 2
_SHORT = 32
_STYLES = {
    **dict.fromkeys(("failed", "crashed", "timed_out", "raised", "shut", "critical", "high"), "red"),
    **dict.fromkeys(("undecided", "lost", "limited", "medium", "warning"), "yellow"),
}
"""By what a cell says; colour is for what asks for attention, and for nothing else."""


class ConsoleOrClosedPipe(Console):
    """A console that raises BrokenPipeError where nobody reads any more; rich's own ends the process."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console_on_stdout() -> Console:
    """As wide as the terminal; without colours where it is none, or where NO_COLOR asks for none."""
    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    return ConsoleOrClosedPipe(width=width, highlight=False, markup=False)


@dataclass(frozen=True)
class TerminalTable:
    """A table of text below headings, as rich prints them."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        widths = self._widths(options.max_width)
        if widths:
            yield self._table(widths)
        else:
            yield from self._records()

    def _widths(self, available: int) -> list[int]:
        """The columns, the widest narrowed first; none where words would be broken."""
        columns = list(zip(self.headings, *self.rows, strict=True))
        least = [max(map(_least, cells)) for cells in columns]
        widths = [max(map(_longest_line, cells)) for cells in columns]
        available -= _GAP * (len(columns) - 1)
        if sum(least) > available:
            return []
        for _ in range(sum(widths) - available):
            narrowed = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
            widths[narrowed] -= 1
        return widths

    def _table(self, widths: Sequence[int]) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(self.headings))
        for heading, width in zip(self.headings, widths, strict=True):
            table.add_column(heading, width=width)
        for row in self.rows:
            table.add_row(*(style(cell) for cell in row))
        return table

    def _records(self) -> Iterator[RenderableType]:
        """Each row's first cell; below it the others behind their headings, short ones beside each other."""
        for first, *others in self.rows:
            yield Text(" ".join(first.split("\n")), style="bold")
            lines = [
                Text(f"{heading}: " if heading else "").append_text(style(cell))
                for heading, cell in zip(self.headings[1:], others, strict=True)
                if cell
            ]
            beside = Text("  ").join(line for line in lines if len(line) <= _SHORT)
            for line in filter(len, [beside, *(line for line in lines if len(line) > _SHORT)]):
                yield Padding(line, (0, 0, 0, _GAP))


def _least(cell: str) -> int:
    """How narrow a cell may be."""
    longest_word = max((len(word) for word in cell.split()), default=0)
    return max(longest_word, min(_longest_line(cell), _LEGIBLE))


def _longest_line(cell: str) -> int:
    return max(len(line) for line in cell.split("\n"))


def style(cell: str) -> Text:
    """A cell, coloured where its first line asks for attention."""
    first = cell.partition("\n")[0].partition(",")[0].strip()
    return Text(cell, style=_STYLES.get(first, ""), overflow="fold")


def shown_path(path: Path | str) -> str:
    """As one would type it here: relative to the current folder where it lies below."""
    folder = Path.cwd()
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else str(path)
