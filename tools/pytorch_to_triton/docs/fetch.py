"""Fetching public documentation into the page store: resumable, and not needed for anything else."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import anyio
import anyio.to_thread

from pytorch_to_triton.docs.markdown import NotReadable, to_markdown, with_title
from pytorch_to_triton.docs.sources import (
    INVENTORY,
    INVENTORY_TYPES,
    Origins,
    WantedPage,
    discover,
    release_files,
    site_pages,
    tag_of,
)
from pytorch_to_triton.docs.store import PageStore
from pytorch_to_triton.docs.transport import Absent, Client, Document, NotFetched
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.fetch import Failed, FetchReport
from pytorch_to_triton.schema.page import Page

Outcome = Literal["fetched", "unchanged", "fresh", "absent"]

FRESH = timedelta(days=1)
"""A page that the server confirmed this recently is not fetched again, unless the caller asks for it."""
_AT_ONCE = 4
_COUNTED: dict[Outcome, str] = {
    "fetched": "fetched",
    "unchanged": "unchanged",
    "fresh": "still fresh",
    "absent": "not there",
}
"""Each outcome as the summary counts it."""
_AFTER_FAILURE = (
    "Search on: the installed documentation and the guides need no network, and pages fetched "
    "earlier stay. Fetch again later; pages that are there are not fetched again."
)


async def fetch(
    store: PageStore,
    version: str | None,
    *,
    refresh: bool = False,
    listener: ProgressListener | None = None,
    client: Client | None = None,
    origins: Origins | None = None,
) -> FetchReport:
    """Fetch the documents of the Triton release `version`, and the site, which describes the newest source.

    Each page is kept as soon as it is there, so a fetch that was cancelled goes on where it stopped.
    `refresh` asks for pages again that are fresh. `listener` is sent how many pages are done, and `client` is
    closed in the end. Raises MissingRequirement where pages cannot be written; what goes wrong with the
    network is in the report.
    """
    store.prepare()
    async with client or Client() as client:
        return await _Fetch(store, version, client, origins or Origins(), refresh, listener).run()


@dataclass
class _Fetch:
    store: PageStore
    version: str | None
    client: Client
    origins: Origins
    refresh: bool
    listener: ProgressListener | None
    total: int = 0
    outcomes: dict[str, Outcome | Failed] = field(default_factory=dict)
    """By the name of the page."""

    async def run(self) -> FetchReport:
        started = self.client.clock.now()
        first, *files = release_files(self.origins, self.version) or (None,)
        pages = site_pages(self.origins, self.version)
        self.total = bool(first) + len(files) + len(pages)
        if first:
            await self._bring(first)
            if self.outcomes[first.name] == "absent":
                tag = tag_of(self.version)
                reason = f"The sources have no release {tag}, so none of its documents were asked for."
                self._fail(first.name, first.url, reason)
                files = []
        more = await self._discover()
        self.total = bool(first) + len(files) + len(pages) + len(more)
        queue = iter((*files, *pages, *more))
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(_AT_ONCE):
                    tasks.start_soon(self._work, queue)
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        return self._report(started)

    async def _work(self, queue: Iterator[WantedPage]) -> None:
        for wanted in queue:
            await self._bring(wanted)

    async def _bring(self, wanted: WantedPage) -> None:
        try:
            self.outcomes[wanted.name] = await self._fetch(wanted)
        except Absent:
            self.outcomes[wanted.name] = "absent"
        except (NotFetched, NotReadable) as error:
            self._fail(wanted.name, wanted.url, str(error))
        if self.listener:
            await self.listener.progress(len(self.outcomes), self.total, wanted.name)

    async def _fetch(self, wanted: WantedPage) -> Outcome:
        entry = self.store.entry(wanted.name)
        if entry and entry.page.url != wanted.url:
            entry = None
        now = self.client.clock.now
        if entry and not self.refresh and entry.page.fetched and now() - entry.page.fetched < FRESH:
            if entry.page.applies_to != wanted.applies_to:  # another release since
                self.store.touch(entry, entry.page.fetched, wanted.applies_to)
            return "fresh"
        known = entry.validators if entry else None
        document = await self.client.get(wanted.url, wanted.media_types, known)
        if entry and (document is None or document.validators.digest == entry.validators.digest):
            self.store.touch(entry, now(), wanted.applies_to)
            return "unchanged"
        assert document is not None, "the client returns None for a known page alone"
        page = await anyio.to_thread.run_sync(_page, wanted, document)
        self.store.put(page.model_copy(update={"fetched": now()}), document.validators)
        return "fetched"

    async def _discover(self) -> tuple[WantedPage, ...]:
        url = f"{self.origins.site}{INVENTORY}"
        try:
            inventory = await self.client.get(url, INVENTORY_TYPES)
            return discover(self.origins, self.version, inventory.body) if inventory else ()
        except (NotFetched, ValueError) as error:
            self._fail(f"web/main/{INVENTORY}", url, str(error))
            return ()

    def _fail(self, name: str, url: str, reason: str) -> None:
        self.outcomes[name] = Failed(name=name, url=url, reason=reason)

    def _report(self, started: datetime) -> FetchReport:
        pages = {outcome: self._pages(outcome) for outcome in _COUNTED}
        met = (self.outcomes[name] for name in sorted(self.outcomes))
        failed = tuple(outcome for outcome in met if isinstance(outcome, Failed))
        counts = {what: len(pages[outcome]) for outcome, what in _COUNTED.items()} | {"failed": len(failed)}
        reasons = list(dict.fromkeys(failure.reason for failure in failed))
        summary = (
            f"Pages of Triton's documentation: {', '.join(f'{n} {what}' for what, n in counts.items() if n)}."
        )
        if reasons:
            summary += f" {reasons[0]}"
        if len(reasons) > 1:
            summary += f" For other pages, other reasons: {len(reasons) - 1} more."
        return FetchReport(
            summary=summary,
            next_step=_AFTER_FAILURE if reasons else "Search them with: docs search WORDS",
            version=self.version,
            **pages,
            failed=failed,
            damaged=tuple(sorted(set(self.store.damaged))),
            origins=(self.origins.site, self.origins.sources),
            started=started,
            ended=self.client.clock.now(),
            folder=self.store.root,
        )

    def _pages(self, outcome: Outcome) -> tuple[str, ...]:
        return tuple(sorted(name for name, met in self.outcomes.items() if met == outcome))


def _page(wanted: WantedPage, document: Document) -> Page:
    """The document as a page, not stamped yet. Raises NotReadable where it is no text or has no article."""
    try:
        text = document.body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotReadable("The document is not text in UTF-8.") from error
    title, markdown = with_title(to_markdown(text, wanted.form, wanted.url), wanted.title)
    return Page(
        name=wanted.name,
        title=title,
        source="fetched",
        applies_to=wanted.applies_to,
        text=markdown,
        url=wanted.url,
    )
