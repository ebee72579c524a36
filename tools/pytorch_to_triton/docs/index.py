"""A full-text index of pages, in memory: it is built faster than an index on disk could be kept right."""

import sqlite3
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytorch_to_triton.docs.installed import MEMBERS
from pytorch_to_triton.docs.sections import PASSAGE_CHARACTERS, cut, sections_of
from pytorch_to_triton.docs.words import index_text
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.schema.page import Page

_WEIGHTS = {"name": 8.0, "headings": 4.0, "spellings": 3.0, "body": 1.0}
"""What a word counts by where it stands."""
_TABLE = (
    f"CREATE VIRTUAL TABLE words USING fts5({', '.join(_WEIGHTS)}, content='', tokenize='porter unicode61')"
)
_INSERT = f"INSERT INTO words (rowid, {', '.join(_WEIGHTS)}) VALUES (?, ?, ?, ?, ?)"
_MOST_MATCHES = 500
"""A word that matches more passages says little, and the best of them are enough."""
_SCORES = (
    "SELECT rowid, -rank FROM words WHERE words MATCH ? "
    f"AND rank MATCH 'bm25({', '.join(map(str, _WEIGHTS.values()))})' ORDER BY rank LIMIT {_MOST_MATCHES}"
)


@dataclass(frozen=True)
class Passage:
    """A stretch of a page: a section, a part of a long one, or the whole of a short page."""

    page: Page
    section: str
    """The headings below the page's title, outermost first; empty for the page's beginning."""
    text: str
    """Markdown."""


class Index:
    """The passages of `pages` by their words.

    `spellings` are further names of pages: what is searched by them finds the page. Raises MissingRequirement
    where SQLite has no full-text search.
    """

    def __init__(self, pages: Sequence[Page], spellings: Mapping[str, str]) -> None:
        self.passages = [passage for page in pages for passage in passages_of(page)]
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._database.close)
        try:
            self._database.execute(_TABLE)
        except sqlite3.OperationalError as error:
            raise MissingRequirement(
                f"The SQLite {sqlite3.sqlite_version} of this Python has no full-text search: {error}.",
                "Use a Python whose sqlite3 has FTS5, as nearly all have; docs read works without it.",
            ) from error
        self._database.executemany(_INSERT, _rows(self.passages, spellings))

    def scores(self, expression: str) -> dict[int, float]:
        """The passages that match an expression of the full-text search best, by their places in `passages`,
        with their scores: BM25, positive, the higher the better.
        """
        return dict(self._database.execute(_SCORES, (expression,)).fetchall())


def passages_of(page: Page) -> Iterator[Passage]:
    """A short page whole, a longer one by its sections; without the list of a class's members, which has the
    words of many questions and answers none.
    """
    text = page.text.partition(f"\n## {MEMBERS}\n")[0] if page.source == "installed" else page.text
    if len(text) <= PASSAGE_CHARACTERS:
        yield Passage(page, "", text)
        return
    for section in sections_of(text):
        yield from (Passage(page, section.path, piece) for piece in cut(section.text))


def _rows(passages: Collection[Passage], spellings: Mapping[str, str]) -> Iterator[tuple[int | str, ...]]:
    further: dict[str, list[str]] = {}
    for spelling, name in spellings.items():
        # Other spellings are of members that have no page: they would say much of what the page is not about.
        if spelling.rpartition(".")[2] == name.rpartition(".")[2]:
            further.setdefault(name, []).append(spelling)
    for number, passage in enumerate(passages):
        page = passage.page
        names = f"{page.name} {page.title}", passage.section, " ".join(further.get(page.name, ()))
        yield number, *map(index_text, (*names, passage.text))
