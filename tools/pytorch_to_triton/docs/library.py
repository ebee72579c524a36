"""Everything there is to read: the installed Triton, guides, fetched pages, and their index.

The full-text index lies in memory: it is built faster than one on disk could be kept right.
"""

import difflib
import re
import sqlite3
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import accumulate

from anyio import to_thread

from pytorch_to_triton import places
from pytorch_to_triton.docs.installed import MEMBERS, installed_pages, spellings
from pytorch_to_triton.docs.page_store import PageStore
from pytorch_to_triton.docs.sections import PASSAGE_CHARACTERS, cut, sections_of, title_of
from pytorch_to_triton.docs.words import index_text
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.documentation import DocsStatus, Fetched, MissingEntry
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.page import Page
from pytorch_to_triton.triton_api.fixes import name_suggestion, new_home, spelling_of
from pytorch_to_triton.triton_api.surface import Surface, surface

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
_NEAREST = 5
_ALIKE = 0.7
"""From 0 to 1, as difflib measures it."""
_LONG = {
    "libdevice.": "triton.language.extra.libdevice.",
    "tl.": "triton.language.",
    "triton.": "triton.",
}
"""What the usual imports make of the beginnings of dotted names."""
OLD = timedelta(days=30)
"""Older pages are worth fetching again."""


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


@dataclass(frozen=True)
class Library:
    """Pages by their names and other spellings."""

    pages: Mapping[str, Page]
    spellings: Mapping[str, str]
    surface: Surface | None
    """Of the installed Triton; None where it could not be read."""
    missing: tuple[MissingEntry, ...]
    """Sources that could not be read."""

    @cached_property
    def index(self) -> Index:
        """The index of all pages; built when it is first asked."""
        return Index(tuple(self.pages.values()), self.spellings)

    @property
    def unfetched(self) -> tuple[MissingEntry, ...]:
        """That there are no public pages; reported only where nothing else matches."""
        if any(page.source == "fetched" for page in self.pages.values()):
            return ()
        fix = "docs fetch gets them; it needs the network."
        return (MissingEntry(what="No public pages have been fetched.", fix=fix),)

    def named(self, name: str) -> tuple[Page, ...]:
        """The pages that a name may mean, the likeliest first: one of exactly that name or spelling comes
        first; `load` means whatever ends so, guides before functions, short names before long ones.
        """
        exact = self.pages.get(name) or self.pages.get(self.spellings.get(name.strip(), ""))
        names = [*([exact.name] if exact else []), *self._by_ending.get(_plain(name).lower(), [])]
        return tuple(self.pages[known] for known in dict.fromkeys(names))

    def missing_name(self, name: str) -> MissingEntry | None:
        """What to write instead of a dotted name of Triton's that the installed one does not have: `tl.relu`.

        None where it has the name, and where that cannot be known.
        """
        known = self.surface
        module, dot, rest = _plain(name).partition(".")
        path = _LONG[module + dot] + rest if module + dot in _LONG else ""
        beginnings = accumulate(path.split("."), "{}.{}".format)
        absent = next((part for part in beginnings if "." in part and known and not known.find(part)), None)
        # Whether a name exists is not certain where its owner's names were not all read.
        if known is None or absent is None or not known.lists(absent.rpartition(".")[0]):
            return None
        fix = (new_home(path, known) if absent != path else None) or name_suggestion(absent, known)
        return MissingEntry(what=f"Triton {known.version} has no {spelling_of(path)}.", fix=fix)

    def nearest(self, name: str) -> tuple[str, ...]:
        """Pages of the same name elsewhere, then those whose names look like this one."""
        plain = _plain(name).lower()
        alike = difflib.get_close_matches(plain, self._by_ending, 2 * _NEAREST, _ALIKE)
        endings = [re.split(r"[./]", plain)[-1], *alike]
        pages = dict.fromkeys(page for ending in endings for page in self._by_ending.get(ending, [])[:1])
        return tuple(pages)[:_NEAREST]

    @cached_property
    def _by_ending(self) -> dict[str, list[str]]:
        """Pages by each of the ways to name them, in small letters, and by the last parts of those."""
        ways: dict[str, set[str]] = {}
        for way, page in [*((name, name) for name in self.pages), *self.spellings.items()]:
            for ending in (_plain(way), re.split(r"[./]", way)[-1]):
                ways.setdefault(ending.lower(), set()).add(page)
        return {way: sorted(pages, key=self._rank) for way, pages in ways.items()}

    def _rank(self, name: str) -> tuple[int, int, str]:
        source = self.pages[name].source
        return ("guide", "installed", "fetched").index(source), name.count("."), name


_open: dict[Runtime, tuple[int, Library]] = {}
"""The last library for each runtime, with the state of its fetched pages: to read it again takes longer than
a search."""


async def open_library(worker: WorkerClient, runtime: Runtime) -> Library:
    """All pages that can be read; `missing` lists what cannot."""
    state = _state_of_fetched_pages()
    read_at, library = _open.get(runtime, (None, None))
    if library is not None and read_at == state:
        return library
    triton: Surface | None = None
    missing: tuple[MissingEntry, ...] = ()
    try:
        triton = await surface(worker, runtime)
    except MissingRequirement as refusal:
        what = f"The installed Triton cannot be read: {refusal.message}"
        missing = (MissingEntry(what=what, fix=refusal.hint),)
    library = await to_thread.run_sync(lambda: collect(triton, PageStore(places.docs()).pages(), missing))
    if triton is not None:
        _open[runtime] = state, library
    return library


def collect(
    triton: Surface | None, fetched: Iterable[Page], missing: tuple[MissingEntry, ...] = ()
) -> Library:
    """The pages of the installed Triton, if there is one, of the guides, and those that were fetched."""
    pages = [*guide_pages(), *(installed_pages(triton) if triton else ()), *fetched]
    return Library(
        pages={page.name: page for page in pages},
        spellings=spellings(triton) if triton else {},
        surface=triton,
        missing=missing,
    )


def guide_pages() -> list[Page]:
    """Each guide that ships with this project as the page `guides/NAME`.

    Raises FileNotFoundError where they are not installed.
    """
    files = sorted(places.shipped("docs_cache/guides").glob("*.md"))
    texts = {file.stem: file.read_text(encoding="utf-8") for file in files}
    return [guide(f"guides/{name}", title_of(text), text) for name, text in texts.items()]


def guide(name: str, title: str, text: str) -> Page:
    """A page that was written here: a guide, or what a rule of audit says of itself."""
    return Page(name=name, title=title, source="guide", applies_to="Triton 3.6 to 3.9", text=text)


def _state_of_fetched_pages() -> int:
    """Changes with every page that is kept: each is renamed into the folder."""
    folder = places.docs()
    return folder.stat().st_mtime_ns if folder.exists() else 0


def _plain(name: str) -> str:
    """A name without what may be copied with it: `@triton.jit`, `tl.load(ptr)`, `masks.md`."""
    plain = name.replace("`", "").strip().removeprefix("docs://").removeprefix("@")
    if plain.endswith(")"):
        plain = plain.partition("(")[0]
    return plain.removesuffix(".md").strip()


def status(library: Library, now: datetime) -> DocsStatus:
    """The sources of a library as they are at `now`."""
    counts = Counter(page.source for page in library.pages.values())
    triton = library.surface.version if library.surface else None
    confirmed: dict[str, list[datetime]] = {}
    for page in library.pages.values():
        if page.fetched is not None:
            confirmed.setdefault(page.applies_to, []).append(page.fetched)
    old = sum(now - time > OLD for times in confirmed.values() for time in times)
    missing = (*library.missing, *library.unfetched, *_outdated_pages(old))
    names = f"{counts['installed']} pages of the installed Triton {triton}"
    return DocsStatus(
        summary=f"There are {names if triton else 'no pages of an installed Triton'}, "
        f"{counts['guide']} guides and {counts['fetched']} fetched pages.",
        next_step=missing[0].fix if missing else "docs search and docs read have all pages.",
        triton=triton,
        names=counts["installed"],
        guides=counts["guide"],
        fetched=tuple(
            Fetched(applies_to=applies_to, pages=len(times), oldest=min(times), newest=max(times))
            for applies_to, times in sorted(confirmed.items())
        ),
        missing=missing,
    )


def _outdated_pages(old: int) -> Iterator[MissingEntry]:
    if old:
        pages = "1 fetched page was" if old == 1 else f"{old} fetched pages were"
        yield MissingEntry(
            what=f"{pages} last confirmed more than {OLD.days} days ago.",
            fix="docs fetch asks the servers again; it needs the network.",
        )
