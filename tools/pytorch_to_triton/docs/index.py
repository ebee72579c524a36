"""A full-text index of pages: one SQLite file for one set of pages, built when it is first searched.

Its name holds the digest of what is in it, so it is never stale. It is written beside its place and renamed
into it, so two processes may build it at once; a damaged one is built again.
"""

import hashlib
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pytorch_to_triton.docs.installed import MEMBERS
from pytorch_to_triton.docs.sections import PASSAGE_CHARACTERS, cut, sections_of
from pytorch_to_triton.docs.words import index_text
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.schema.page import Page

_LAYOUT = 1
"""Changes with the tables, and with what is written into them."""
_KEPT = 4
"""This many indexes are kept: one for each installed Triton that is in use."""
_WEIGHTS = {"name": 8.0, "headings": 4.0, "spellings": 3.0, "body": 1.0}
"""What a word counts by where it stands."""
_TABLES = f"""
CREATE TABLE passages (id INTEGER PRIMARY KEY, page TEXT NOT NULL, section TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE words USING fts5({", ".join(_WEIGHTS)}, content='', tokenize='porter unicode61');
"""
_MOST_MATCHES = 500
"""A word that matches more passages says little, and the best of them are enough."""
_SCORES = (
    "SELECT rowid, -rank FROM words WHERE words MATCH ? "
    f"AND rank MATCH 'bm25({', '.join(map(str, _WEIGHTS.values()))})' ORDER BY rank LIMIT {_MOST_MATCHES}"
)
_INSERT = f"INSERT INTO words (rowid, {', '.join(_WEIGHTS)}) VALUES (?, ?, ?, ?, ?)"
_MODULES = "SELECT name FROM pragma_module_list"

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class IndexedPassage:
    """A stretch of a page: a section, a part of a long one, or the whole of a short page."""

    page: str
    section: str
    """The headings below the page's title, outermost first; empty for the page's beginning."""
    text: str
    """Markdown."""


class Index:
    """The index of `pages`, in a folder of indexes.

    `spellings` are further names of pages: what is searched by them finds the page.
    """

    def __init__(self, pages: Sequence[Page], spellings: Mapping[str, str], folder: Path) -> None:
        self._pages = pages
        self._spellings = spellings
        self._is_sound = False
        self.path = folder / f"pages-{digest_of(pages, spellings)}.sqlite"

    def scores(self, expressions: Collection[str]) -> list[dict[int, float]]:
        """For each expression of the full-text search the passages that match it best, by number, with their
        scores: BM25, positive, the higher the better. Raises MissingRequirement without FTS5.
        """
        return self._read(
            lambda database: [dict(database.execute(_SCORES, (expression,))) for expression in expressions]
        )

    @cached_property
    def homes(self) -> dict[int, str]:
        """The page of each passage, by the passage's number. Raises MissingRequirement without FTS5."""
        return self._read(lambda database: dict(database.execute("SELECT id, page FROM passages")))

    def passages(self, numbers: Collection[int]) -> list[IndexedPassage]:
        """Passages by their numbers, in the order of those. Raises MissingRequirement without FTS5."""
        query = "SELECT page, section, text FROM passages WHERE id = ?"
        return self._read(
            lambda database: [
                IndexedPassage(*database.execute(query, (number,)).fetchone()) for number in numbers
            ]
        )

    def _read(self, ask: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What `ask` makes of the index, which is built first where it is missing or damaged."""
        if not self._is_sound and not is_sound(self.path):
            build(self.path, self._pages, self._spellings)
        try:
            answer = _ask(self.path, ask)
        except sqlite3.DatabaseError:
            build(self.path, self._pages, self._spellings)
            answer = _ask(self.path, ask)
        self._is_sound = True
        return answer


def digest_of(pages: Sequence[Page], spellings: Mapping[str, str]) -> str:
    """The same for the same pages and spellings, in any order."""
    digest = hashlib.sha256(f"{_LAYOUT} {_TABLES}".encode())
    for page in sorted(pages, key=lambda page: page.name):
        digest.update(f"{page.name}\0{page.title}\0{page.text}\0".encode())
    for spelling, name in sorted(spellings.items()):
        digest.update(f"{spelling}\0{name}\0".encode())
    return digest.hexdigest()[:20]


def passages_of(page: Page) -> Iterator[IndexedPassage]:
    """A short page whole, a longer one by its sections; without the list of a class's members, which has the
    words of many questions and answers none.
    """
    text = page.text.partition(f"\n## {MEMBERS}\n")[0] if page.source == "installed" else page.text
    if len(text) <= PASSAGE_CHARACTERS:
        yield IndexedPassage(page.name, "", text)
        return
    for section in sections_of(text):
        yield from (IndexedPassage(page.name, section.path, piece) for piece in cut(section.text))


def is_sound(path: Path) -> bool:
    """Whether an index is there and whole."""
    try:
        (verdict,) = _ask(path, lambda database: database.execute("PRAGMA quick_check(1)").fetchone())
    except sqlite3.DatabaseError:
        return False
    return bool(verdict == "ok")


def build(path: Path, pages: Sequence[Page], spellings: Mapping[str, str]) -> None:
    """Write the index of `pages`, and remove the oldest ones. Raises MissingRequirement without FTS5."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".building-") as folder:
        unfinished = Path(folder, path.name)
        with closing(sqlite3.connect(unfinished)) as database:
            refuse_without_full_text_search({name for (name,) in database.execute(_MODULES)})
            database.executescript(_TABLES)
            _fill(database, pages, spellings)
            database.commit()
        unfinished.replace(path)
    for old in sorted(path.parent.glob("pages-*.sqlite"), key=_last_change, reverse=True)[_KEPT:]:
        old.unlink(missing_ok=True)


def refuse_without_full_text_search(modules: Collection[str]) -> None:
    """Raises MissingRequirement where SQLite was compiled without FTS5; `modules` are those that it has."""
    if "fts5" not in modules:
        raise MissingRequirement(
            f"The SQLite {sqlite3.sqlite_version} of this Python has no full-text search (FTS5).",
            "Use a Python whose sqlite3 has it, as nearly all have; docs read works without it.",
        )


def _fill(database: sqlite3.Connection, pages: Sequence[Page], spellings: Mapping[str, str]) -> None:
    further: dict[str, list[str]] = {}
    for spelling, name in spellings.items():
        # Other spellings are of members that have no page: they would say much of what the page is not about.
        if _last(spelling) == _last(name):
            further.setdefault(name, []).append(spelling)
    passages = [(page, passage) for page in pages for passage in passages_of(page)]
    for number, (page, passage) in enumerate(passages, start=1):
        row = (number, passage.page, passage.section, passage.text)
        database.execute("INSERT INTO passages VALUES (?, ?, ?, ?)", row)
        columns = (
            f"{page.name} {page.title}",
            passage.section,
            " ".join(further.get(page.name, ())),
            passage.text,
        )
        database.execute(_INSERT, (number, *(index_text(column) for column in columns)))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _ask(path: Path, ask: Callable[[sqlite3.Connection], Answer]) -> Answer:
    """Raises sqlite3.DatabaseError where the index is missing or damaged."""
    # Immutable: an index is replaced, never changed, so nothing need be locked.
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        return ask(database)


def _last_change(path: Path) -> float:
    return path.stat().st_mtime
