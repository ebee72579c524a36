"""Fetching public documentation: resumable, page by page."""

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

import anyio
import anyio.to_thread

from pytorch_to_triton.docs.markdown import NotReadable, to_markdown
from pytorch_to_triton.docs.page_store import PageStore, StoredPage
from pytorch_to_triton.docs.sections import title_of
from pytorch_to_triton.docs.transport import (
    Absent,
    Client,
    NotFetched,
    WantedPage,
    release_files,
    site_pages,
    tag_of,
)
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.task_group import task_group
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
    "Searching still works: the installed documentation and the guides need no network, and pages fetched "
    "earlier are kept. Fetch again later; pages that are there are not fetched again."
)


async def fetch(
    store: PageStore,
    version: str | None,
    *,
    refresh: bool = False,
    listener: ProgressListener | None = None,
    client: Client | None = None,
) -> FetchReport:
    """Fetch the documents of the Triton release `version`, and the site, which describes the newest source.

    Each page is kept as soon as it is there, so a fetch that was cancelled goes on where it stopped.
    `refresh` asks for pages again that are fresh. `listener` is sent how many pages are done, and `client` is
    closed in the end. Raises MissingRequirement where pages cannot be written; what goes wrong with the
    network is in the report.
    """
    async with aclosing(client or Client()) as client:
        return await _Fetch(store, version, client, refresh, listener).run()


@dataclass
class _Fetch:
    store: PageStore
    version: str | None
    client: Client
    refresh: bool
    listener: ProgressListener | None
    total: int = 0
    outcomes: dict[str, Outcome | Failed] = field(default_factory=dict)
    """By the name of the page."""

    async def run(self) -> FetchReport:
        started = self.client.now()
        files = tuple(release_files(self.client.origins, self.version))
        wanted = (*files, *await self._site_pages())
        self.total = len(self.outcomes) + len(wanted)
        queue = iter(wanted)
        async with task_group() as tasks:
            for _ in range(_AT_ONCE):
                tasks.start_soon(self._work, queue)
        if files and all(self.outcomes[file.name] == "absent" for file in files):
            self._fail(files[0].name, files[0].url, f"The sources have no release {tag_of(self.version)}.")
        return self._report(started)

    async def _site_pages(self) -> tuple[WantedPage, ...]:
        url = self.client.origins.inventory
        try:
            inventory = await self.client.get(url)
            return tuple(site_pages(self.client.origins, self.version, inventory.body)) if inventory else ()
        except (NotFetched, ValueError) as error:
            self._fail("web/main/objects.inv", url, str(error))
            return ()

    async def _work(self, queue: Iterator[WantedPage]) -> None:
        for wanted in queue:
            try:
                self.outcomes[wanted.name] = await self._fetch(wanted)
            except Absent:
                self.outcomes[wanted.name] = "absent"
            except (NotFetched, NotReadable) as error:
                self._fail(wanted.name, wanted.url, str(error))
            if self.listener:
                await self.listener.progress(len(self.outcomes), self.total, wanted.name)

    async def _fetch(self, wanted: WantedPage) -> Outcome:
        kept, now = self.store.entry(wanted.name), self.client.now
        if kept and kept.page.fetched and not self.refresh and now() - kept.page.fetched < FRESH:
            page = kept.page.model_copy(update={"applies_to": wanted.applies_to})
            if page != kept.page:  # another release since
                self.store.put(StoredPage(page=page, conditions=kept.conditions))
            return "fresh"
        document = await self.client.get(wanted.url, kept.conditions if kept else None)
        if document:
            page = await anyio.to_thread.run_sync(_page, wanted, document.body, now())
            self.store.put(StoredPage(page=page, conditions=document.conditions))
            return "unchanged" if kept and kept.page.text == page.text else "fetched"
        assert kept is not None, "the client returns None for a known page alone"
        confirmed = {"fetched": now(), "applies_to": wanted.applies_to}
        self.store.put(kept.model_copy(update={"page": kept.page.model_copy(update=confirmed)}))
        return "unchanged"

    def _fail(self, name: str, url: str, reason: str) -> None:
        self.outcomes[name] = Failed(name=name, url=url, reason=reason)

    def _report(self, started: datetime) -> FetchReport:
        met = sorted(self.outcomes.items())
        pages = {outcome: tuple(name for name, known in met if known == outcome) for outcome in _COUNTED}
        failed = tuple(outcome for _, outcome in met if isinstance(outcome, Failed))
        counts = {what: len(pages[outcome]) for outcome, what in _COUNTED.items()} | {"failed": len(failed)}
        counted = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
        reasons = list(dict.fromkeys(failure.reason for failure in failed))
        summary = [f"Pages of Triton's documentation: {counted}.", *reasons[:1]]
        if len(reasons) > 1:
            summary.append(f"For other pages, other reasons: {len(reasons) - 1} more.")
        return FetchReport(
            summary=" ".join(summary),
            next_step=_AFTER_FAILURE if reasons else "Search them with: docs search WORDS",
            version=self.version,
            **pages,
            failed=failed,
            origins=self.client.origins.allowed,
            started=started,
            ended=self.client.now(),
            folder=self.store.root,
        )


def _page(wanted: WantedPage, body: bytes, fetched: datetime) -> Page:
    """The document as a page. Raises NotReadable where it is no text or has no article."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotReadable("The document is not text in UTF-8.") from error
    markdown = to_markdown(text, wanted.form, wanted.url)
    title = title_of(markdown)
    if not title:
        title = wanted.name.rpartition("/")[2]
        markdown = f"# {title}\n\n{markdown}"
    return Page(
        name=wanted.name,
        title=title,
        source="fetched",
        applies_to=wanted.applies_to,
        text=markdown,
        url=wanted.url,
        fetched=fetched,
    )
