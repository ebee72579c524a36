"""Long lines of generated source, broken at their brackets as a formatter would."""

from __future__ import annotations

import io
import tokenize
from itertools import pairwise

WIDTH = 100
OPENING, CLOSING = "([{", ")]}"


def fold_long_lines(text: str) -> str:
    """The text with every line that is too long in pieces, an item of its longest brackets a line."""
    return "\n".join(piece for line in text.splitlines() for piece in pieces(line))


def pieces(line: str) -> list[str]:
    """One line, in as many as it takes; as it is where no bracket of it can be broken."""
    if len(line) <= WIDTH or not (span := longest_brackets(line)):
        return [line]
    start, end, commas = span
    margin = line[: len(line) - len(line.lstrip())]
    items = items_in(line, start, end, commas)
    # One item may be a comprehension or a mere grouping, to which a comma would give another meaning.
    ending = "," if len(items) > 1 else ""
    if len(items) == 1:
        items = [item if i == 0 else f"or {item}" for i, item in enumerate(items[0].split(" or "))]
    inside = [f"{margin}    {item}{ending}" for item in items]
    return [line[: start + 1], *(p for one in inside for p in pieces(one)), margin + line[end:]]


def items_in(line: str, start: int, end: int, commas: list[int]) -> list[str]:
    """What stands between brackets, at its commas; a comprehension as one."""
    edges = [start, *commas, end]
    items = [item for a, b in pairwise(edges) if (item := line[a + 1 : b].strip())]
    return [line[start + 1 : end].strip()] if any(" for " in item for item in items) else items


def longest_brackets(line: str) -> tuple[int, int, list[int]] | None:
    """Start and end of the outermost brackets that hold the most, and the commas in them."""
    depth, start = 0, 0
    commas: list[int] = []
    spans: list[tuple[int, int, list[int]]] = []
    for token in tokens(line):
        column = token.start[1]
        if token.string in OPENING and token.type == tokenize.OP:
            depth += 1
            if depth == 1:
                start, commas = column, []
        elif token.string in CLOSING and token.type == tokenize.OP:
            depth -= 1
            if depth == 0:
                spans.append((start, column, commas))
        elif token.string == "," and depth == 1:
            commas.append(column)
    broken = [span for span in spans if span[1] - span[0] > 2]
    return max(broken, key=lambda span: span[1] - span[0], default=None)


def tokens(line: str) -> list[tokenize.TokenInfo]:
    """Those of one line; none where it is a part of a longer string."""
    try:
        return list(tokenize.generate_tokens(io.StringIO(line.strip() and line).readline))
    except (tokenize.TokenError, IndentationError):
        return []
