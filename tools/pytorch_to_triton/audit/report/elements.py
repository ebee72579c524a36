"""Pieces of HTML: each function returns markup in which all text is escaped."""

import re
from collections.abc import Iterable
from html import escape

from pytorch_to_triton.audit.report.tables import Table
from pytorch_to_triton.audit.report.wording import visible

_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def text(prose: str) -> str:
    """Prose, its code spans as code."""
    return _SPAN.sub(r"<code>\1</code>", escape(visible(prose)))


def code(source: str) -> str:
    """Code within a line."""
    return f"<code>{escape(visible(source))}</code>"


def block(source: str, label: str) -> str:
    """Code on lines of its own."""
    return scrolling("pre", code(source), label)


def scrolling(tag: str, markup: str, label: str) -> str:
    """What scrolls within itself where the page is narrow, with the keyboard too."""
    return f'<{tag} class="wide" tabindex="0" role="region" aria-label="{escape(label)}">{markup}</{tag}>'


def badge(word: str) -> str:
    """A severity, a status or a verdict: a word and its colour."""
    kind = "" if " " in word else f" {word}"
    return f'<span class="badge{kind}">{escape(word)}</span>'


def table(content: Table, label: str) -> str:
    """A table; its label says what it holds."""
    headings = "".join(f'<th scope="col">{text(heading)}</th>' for heading in content.headings)
    rows = "\n".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in content.rows)
    whole = f"<table><thead><tr>{headings}</tr></thead>\n<tbody>{rows}</tbody></table>"
    return scrolling("div", whole, label)


def items(entries: Iterable[str], *, tag: str = "ul") -> str:
    """A list of markup."""
    return f"<{tag}>{''.join(f'<li>{entry}</li>' for entry in entries)}</{tag}>"
