"""Tables on a terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text


def table_of(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    return table
