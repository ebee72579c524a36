"""Status: what there is to read, how old it is, and what is missing."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from pytorch_to_triton.docs.library import Library
from pytorch_to_triton.schema.documentation import DocsStatus, Fetched, MissingEntry

OLD = timedelta(days=30)
"""Older pages are worth fetching again."""


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
