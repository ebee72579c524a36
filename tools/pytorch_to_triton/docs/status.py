"""Status: what there is to read, how old it is, and what is missing."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby

from pytorch_to_triton.docs.library import Library
from pytorch_to_triton.schema.documentation import DocsStatus, Fetched, MissingEntry
from pytorch_to_triton.schema.page import Page

OLD = timedelta(days=30)
"""Older pages are worth fetching again."""


def status(library: Library, now: datetime) -> DocsStatus:
    """The sources of a library as they are at `now`."""
    by_source = {source: list(pages) for source, pages in groupby(_sort(library), lambda page: page.source)}
    fetched = by_source.get("fetched", [])
    names = len(by_source.get("installed", []))
    guides = len(by_source.get("guide", []))
    triton = library.surface.version if library.surface else None
    missing = (*library.missing, *library.unfetched, *_outdated_pages(fetched, now))
    return DocsStatus(
        summary=_summary(triton, names, guides, len(fetched)),
        next_step=missing[0].fix if missing else "docs search and docs read have all pages.",
        triton=triton,
        names=names,
        guides=guides,
        fetched=tuple(_versions(fetched)),
        missing=missing,
    )


def _sort(library: Library) -> list[Page]:
    return sorted(library.pages.values(), key=lambda page: (page.source, page.applies_to))


def _versions(fetched: list[Page]) -> Iterator[Fetched]:
    for applies_to, group in groupby(fetched, lambda page: page.applies_to):
        pages = list(group)
        times = [page.fetched for page in pages if page.fetched is not None]
        yield Fetched(
            applies_to=applies_to,
            pages=len(pages),
            oldest=min(times, default=None),
            newest=max(times, default=None),
        )


def _outdated_pages(fetched: list[Page], now: datetime) -> Iterator[MissingEntry]:
    old = sum(page.fetched is not None and now - page.fetched > OLD for page in fetched)
    if old:
        pages = "1 fetched page was" if old == 1 else f"{old} fetched pages were"
        yield MissingEntry(
            what=f"{pages} last confirmed more than {OLD.days} days ago.",
            fix="docs fetch asks the servers again; it needs the network.",
        )


def _summary(triton: str | None, names: int, guides: int, fetched: int) -> str:
    installed = (
        f"{names} pages of the installed Triton {triton}" if triton else "no pages of an installed Triton"
    )
    return f"There are {installed}, {guides} guides and {fetched} fetched pages."
