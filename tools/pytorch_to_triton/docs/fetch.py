"""Fetching public documentation into the page store: resumable, and not needed for anything else."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
import anyio.to_thread

from pytorch_to_triton.docs.markdown import NotReadable, to_markdown, with_title
from pytorch_to_triton.docs.sources import (
    INVENTORY,
    INVENTORY_TYPES,
    Origins,
    WantedPage,
    discovered,
    release_files,
    site_pages,
    tag_of,
)
from pytorch_to_triton.docs.store import PageStore, StoredPage
from pytorch_to_triton.docs.transport import Absent, Client, Document, NotFetched
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.fetch import Failed, FetchReport
from pytorch_to_triton.schema.page import Page

FRESH = timedelta(days=1)
"""A page that the server confirmed this recently is not fetched again, unless the caller asks for it."""
_AT_ONCE = 4


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
    `refresh` asks for pages again that are fresh. `listener` is sent how many pages are done. Raises
    MissingRequirement where pages cannot be written; what goes wrong with the network is in the report.
    """
    store.prepare()
    if client is None:
        async with Client() as client:
            return await _Fetch(store, version, client, origins or Origins(), refresh, listener).run()
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
    unwritable: MissingRequirement | None = None
    fetched: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)

    async def run(self) -> FetchReport:
        started = self.client.clock.now()
        first, *files = release_files(self.origins, self.version) or (None,)
        pages = site_pages(self.origins, self.version)
        self.total = bool(first) + len(files) + len(pages)
        if first:
            await self._one(first)
            if first.name in self.absent:
                await self._no_such_release(first)
                files = []
        more = await self._discovered()
        self.total = bool(first) + len(files) + len(pages) + len(more)
        queue = iter((*files, *pages, *more))
        async with anyio.create_task_group() as tasks:
            for _ in range(_AT_ONCE):
                tasks.start_soon(self._work, queue, tasks.cancel_scope)
        if self.unwritable:
            raise self.unwritable
        summary, next_step = self._report()
        return FetchReport(
            summary=summary,
            next_step=next_step,
            version=self.version,
            fetched=tuple(sorted(self.fetched)),
            unchanged=tuple(sorted(self.unchanged)),
            fresh=tuple(sorted(self.fresh)),
            absent=tuple(sorted(self.absent)),
            failed=tuple(sorted(self.failed, key=lambda failed: failed.name)),
            damaged=tuple(sorted(set(self.store.damaged))),
            origins=(self.origins.site, self.origins.sources),
            started=started,
            ended=self.client.clock.now(),
            folder=self.store.root,
        )

    async def _work(self, queue: Iterator[WantedPage], scope: anyio.CancelScope) -> None:
        try:
            for wanted in queue:
                await self._one(wanted)
        except MissingRequirement as error:
            self.unwritable = error
            scope.cancel()

    async def _one(self, wanted: WantedPage) -> None:
        try:
            await self._fetch(wanted)
        except Absent:
            self.absent.append(wanted.name)
        except NotFetched as error:
            self._fail(wanted.name, wanted.url, error.reason)
        except NotReadable as error:
            self._fail(wanted.name, wanted.url, str(error))
        if self.listener:
            await self.listener.progress(sum(self._counts().values()), self.total, wanted.name)

    async def _fetch(self, wanted: WantedPage) -> None:
        entry = self.store.entry(wanted.name)
        if entry and entry.page.url != wanted.url:
            entry = None
        if entry and not self.refresh and self._is_fresh(entry):
            if entry.page.applies_to != wanted.applies_to and entry.page.fetched:  # another release since
                self.store.touch(entry, entry.page.fetched, wanted.applies_to)
            self.fresh.append(wanted.name)
            return
        known = entry.validators if entry else None
        document = await self.client.get(wanted.url, wanted.media_types, known)
        if entry and (document is None or document.validators.digest == entry.validators.digest):
            self.store.touch(entry, self.client.clock.now(), wanted.applies_to)
            self.unchanged.append(wanted.name)
        elif document:
            page = await anyio.to_thread.run_sync(_page, wanted, document)
            stamped = page.model_copy(update={"fetched": self.client.clock.now()})
            self.store.put(stamped, document.validators)
            self.fetched.append(wanted.name)

    def _is_fresh(self, entry: StoredPage) -> bool:
        return entry.page.fetched is not None and self.client.clock.now() - entry.page.fetched < FRESH

    async def _discovered(self) -> tuple[WantedPage, ...]:
        url = f"{self.origins.site}{INVENTORY}"
        try:
            inventory = await self.client.get(url, INVENTORY_TYPES)
            return discovered(self.origins, self.version, inventory.body) if inventory else ()
        except (NotFetched, ValueError) as error:
            self._fail(f"web/main/{INVENTORY}", url, str(error))
            return ()

    async def _no_such_release(self, first: WantedPage) -> None:
        self.absent.remove(first.name)
        reason = (
            f"The sources have no release {tag_of(self.version)}, so none of its documents were asked for."
        )
        self._fail(first.name, first.url, reason)

    def _fail(self, name: str, url: str, reason: str) -> None:
        self.failed.append(Failed(name=name, url=url, reason=reason))

    def _counts(self) -> dict[str, int]:
        return {
            "fetched": len(self.fetched),
            "unchanged": len(self.unchanged),
            "still fresh": len(self.fresh),
            "not there": len(self.absent),
            "failed": len(self.failed),
        }

    def _report(self) -> tuple[str, str]:
        counts = ", ".join(f"{count} {what}" for what, count in self._counts().items() if count)
        summary = f"Pages of Triton's documentation: {counts}."
        if not self.failed:
            return summary, "Search them with: docs search WORDS"
        reasons = list(dict.fromkeys(failed.reason for failed in self.failed))
        also = f" For other pages, other reasons: {len(reasons) - 1} more." if len(reasons) > 1 else ""
        return (
            f"{summary} {reasons[0]}{also}",
            "Search on: the installed documentation and the guides need no network, and pages fetched "
            "earlier stay. Fetch again later; pages that are there are not fetched again.",
        )


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
