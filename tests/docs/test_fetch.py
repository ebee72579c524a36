"""A fetch brings what is new, asks for nothing twice, and goes on where it was stopped."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytorch_to_triton.docs.fetch import fetch
from pytorch_to_triton.docs.page_store import PageStore
from pytorch_to_triton.docs.transport import MOST_PAGES, Origins, release_files, site_pages, tag_of
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.schema.page import Page

from .local_server import HTML, Hands, Request, Server, Write, answer, client_of, local_server

pytestmark = pytest.mark.anyio

VERSION = "3.7.1"
INDEX = "web/v3.7.1/docs/index.rst"
TUTORIAL = "web/v3.7.1/python/tutorials/01-vector-add.py"
GUIDE = "web/main/programming-guide/chapter-3/debugging"
LISTED = "web/main/python-api/generated/triton.language.dot"
ABSENT = "web/main/python-api/triton"


def article(title: str) -> bytes:
    return f"<html><body><div role='main'><h1>{title}</h1><p>Text.</p></div></body></html>".encode()


def inventory(*lines: str) -> bytes:
    head = b"# Sphinx inventory version 2\n# Project: Triton\n# Version: \n# Compressed with zlib.\n"
    return head + zlib.compress("\n".join(lines).encode())


def sent(body: bytes, etag: str, content_type: str) -> Any:
    """Answers with the body, or with 304 to who has it."""

    async def handler(request: Request, write: Write) -> None:
        known = request.headers.get("if-none-match") == etag
        await write(answer(304) if known else answer(200, body, content_type=content_type, etag=etag))

    return handler


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """A site of two pages, and a release of two files."""
    async with local_server() as server:
        debugging = "/main/programming-guide/chapter-3/debugging.html"
        dot = "/main/python-api/generated/triton.language.dot.html"
        server.routes = {
            debugging: sent(article("Debugging"), '"g"', HTML),
            dot: sent(article("dot"), '"d"', HTML),
            "/main/objects.inv": answer(
                200,
                inventory(
                    "programming-guide/chapter-3/debugging std:doc -1 x.html Debugging",
                    "python-api/generated/triton.language.dot std:doc -1 x.html dot",
                    "python-api/triton std:doc -1 python-api/triton.html triton",
                ),
                content_type="application/octet-stream",
            ),
            "/sources/v3.7.1/docs/index.rst": sent(b"Welcome\n=======\n", '"i"', "text/plain; charset=utf-8"),
            "/sources/v3.7.1/python/tutorials/01-vector-add.py": sent(
                b'"""\nVector Addition\n===============\n"""\nx = 1\n', '"t"', "text/plain; charset=utf-8"
            ),
        }
        yield server


@pytest.fixture
def store(tmp_path: Path) -> PageStore:
    return PageStore(tmp_path / "pages")


def page_of(store: PageStore, name: str) -> Page:
    (page,) = (page for page in store.pages() if page.name == name)
    return page


class Listener:
    """Remembers what it was reported; `at` is set after so many pages."""

    def __init__(self, pages: int = 0) -> None:
        self.reported: list[tuple[float, float | None, str]] = []
        self.at = anyio.Event()
        self._pages = pages

    async def progress(self, done: float, total: float | None, message: str) -> None:
        self.reported.append((done, total, message))
        if done >= self._pages:
            self.at.set()

    async def item(self, result: dict[str, Any]) -> None:
        raise AssertionError("a fetch has no items")


async def fetched(server: Server, store: PageStore, hands: Hands, **options: Any) -> Any:
    async with client_of(server, hands) as client:
        return await fetch(store, options.pop("version", VERSION), client=client, **options)


async def test_a_first_fetch_keeps_each_page_with_where_when_and_of_which_triton(
    server: Server, store: PageStore
) -> None:
    hands = Hands()
    report = await fetched(server, store, hands)
    assert report.fetched == (GUIDE, LISTED, INDEX, TUTORIAL)
    assert (report.unchanged, report.fresh, report.failed) == ((), (), ())
    assert ABSENT in report.absent
    assert report.summary.startswith("Pages of Triton's documentation: 4 fetched, ")
    assert (report.started, report.folder) == (hands.at, store.root)
    guide, tutorial = page_of(store, GUIDE), page_of(store, TUTORIAL)
    assert guide.model_dump() == {
        "name": GUIDE,
        "title": "Debugging",
        "source": "fetched",
        "applies_to": "main, may not match 3.7",
        "text": "# Debugging\n\nText.\n",
        "url": f"{server.origin}main/programming-guide/chapter-3/debugging.html",
        "fetched": hands.at,
    }
    assert (tutorial.applies_to, tutorial.title) == ("Triton 3.7.1", "Vector Addition")
    assert tutorial.text == "# Vector Addition\n\n```python\nx = 1\n```\n"


async def test_pages_of_today_are_not_asked_for_again_but_for_a_refresh(
    server: Server, store: PageStore
) -> None:
    hands = Hands()
    first = await fetched(server, store, hands)
    server.asked.clear()
    again = await fetched(server, store, hands)
    assert again.fresh == first.fetched
    assert not any("if-none-match" in request.headers for request in server.asked)
    assert not set(server.paths) & {"/sources/v3.7.1/docs/index.rst"}
    refreshed = await fetched(server, store, hands, refresh=True)
    assert refreshed.unchanged == first.fetched


async def test_after_a_day_pages_are_confirmed_or_replaced(server: Server, store: PageStore) -> None:
    hands = Hands()
    await fetched(server, store, hands)
    hands.at += timedelta(days=2)
    server.routes["/sources/v3.7.1/docs/index.rst"] = sent(b"Changed\n=======\n", '"j"', "text/plain")
    report = await fetched(server, store, hands)
    assert (report.fetched, report.unchanged) == ((INDEX,), (GUIDE, LISTED, TUTORIAL))
    changed, confirmed = page_of(store, INDEX), page_of(store, GUIDE)
    assert changed.title == "Changed"
    assert {changed.fetched, confirmed.fetched} == {hands.at}


async def test_the_same_body_is_unchanged_where_a_server_knows_no_validators(
    server: Server, store: PageStore
) -> None:
    hands = Hands()
    server.routes["/sources/v3.7.1/docs/index.rst"] = answer(200, b"Welcome\n=======\n")
    await fetched(server, store, hands)
    assert INDEX in (await fetched(server, store, hands, refresh=True)).unchanged


async def test_another_release_makes_fresh_pages_say_so_without_fetching_them(
    server: Server, store: PageStore
) -> None:
    hands = Hands()
    await fetched(server, store, hands)
    before = page_of(store, GUIDE)
    report = await fetched(server, store, hands, version="3.8.0")
    assert page_of(store, GUIDE) == before.model_copy(update={"applies_to": "main, may not match 3.8"})
    assert GUIDE in report.fresh


async def test_a_release_without_sources_is_reported_once(server: Server, store: PageStore) -> None:
    report = await fetched(server, store, Hands(), version="9.9.9")
    assert [failed.reason for failed in report.failed] == ["The sources have no release v9.9.9."]
    assert report.fetched == (GUIDE, LISTED)


async def test_one_bad_page_is_reported_and_the_others_come(server: Server, store: PageStore) -> None:
    server.routes |= {
        "/main/index.html": answer(200, b"<html><p>no article</p></html>", content_type=HTML),
        "/main/python-api/triton.html": answer(200, b"<html>\xff</html>", content_type=HTML),
        "/main/python-api/triton-semantics.html": answer(302, location="https://example.org/"),
        "/main/getting-started/installation.html": answer(200, b"x" * (10 << 20), content_type=HTML),
        "/main/objects.inv": answer(
            200,
            inventory(
                *(
                    f"{name} std:doc -1 x.html X"
                    for name in (
                        "index",
                        "python-api/triton",
                        "python-api/triton-semantics",
                        "getting-started/installation",
                        GUIDE.removeprefix("web/main/"),
                        LISTED.removeprefix("web/main/"),
                    )
                )
            ),
        ),
    }
    report = await fetched(server, store, Hands())
    reported = {failed.name.removeprefix("web/main/"): failed.reason for failed in report.failed}
    for name, reason in {
        "index": "has no article",
        "python-api/triton": "not text in UTF-8",
        "python-api/triton-semantics": "not among the places",
        "getting-started/installation": "larger than",
    }.items():
        assert reason in reported.pop(name)
    assert reported == {}
    assert report.fetched == (GUIDE, LISTED, INDEX, TUTORIAL)
    assert "4 failed" in report.summary
    assert "other reasons: 3 more" in report.summary


@pytest.mark.parametrize(
    "sent_inventory",
    [answer(404), answer(200, b"<html>", content_type=HTML), answer(200, b"# Sphinx inventory version 2\n")],
)
async def test_without_an_inventory_the_files_of_the_release_come(
    server: Server, store: PageStore, sent_inventory: bytes
) -> None:
    server.routes["/main/objects.inv"] = sent_inventory
    report = await fetched(server, store, Hands())
    assert [failed.name for failed in report.failed] == ["web/main/objects.inv"]
    assert report.fetched == (INDEX, TUTORIAL)


async def test_without_a_network_the_report_says_so_and_earlier_pages_stay(store: PageStore) -> None:
    hands = Hands()
    async with local_server() as server:
        server.routes["/sources/v3.7.1/docs/index.rst"] = answer(200, b"Welcome\n=======\n")
        await fetched(server, store, hands)
    hands.at += timedelta(days=2)
    report = await fetched(server, store, hands)
    (reason,) = {failed.reason for failed in report.failed}
    assert reason.startswith("No connection to 127.0.0.1 could be made")
    assert report.summary.endswith(reason)
    assert "need no network" in report.next_step
    assert [page.title for page in store.pages()] == ["Welcome"]


async def test_a_cancelled_fetch_goes_on_where_it_stopped(server: Server, store: PageStore) -> None:
    hands = Hands()
    tutorial = "/sources/v3.7.1/python/tutorials/01-vector-add.py"
    whole = server.routes[tutorial]

    async def never(request: Request, write: Write) -> None:
        await asyncio.get_running_loop().create_future()

    server.routes[tutorial] = never
    all_but_one = len([*release_files(Origins(), VERSION)]) + len((GUIDE, LISTED, ABSENT)) - 1
    listener = Listener(pages=all_but_one)
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await fetched(server, store, hands, listener=listener)

        tasks.start_soon(run)
        await listener.at.wait()
        tasks.cancel_scope.cancel()
    assert [page.name for page in store.pages()] == [GUIDE, LISTED, INDEX]
    server.routes[tutorial] = whole
    report = await fetched(server, store, hands)
    assert (report.fetched, report.fresh) == ((TUTORIAL,), (GUIDE, LISTED, INDEX))


async def test_progress_is_reported_page_by_page_up_to_the_last(server: Server, store: PageStore) -> None:
    listener = Listener()
    report = await fetched(server, store, Hands(), listener=listener)
    done = [reported[0] for reported in listener.reported]
    assert done == [float(i) for i in range(1, len(done) + 1)]
    assert listener.reported[-1][1] == len(done) == len(report.fetched) + len(report.absent)
    assert {message for *_, message in listener.reported} == {*report.fetched, *report.absent}


async def test_two_fetches_at_once_leave_every_page_whole(server: Server, tmp_path: Path) -> None:
    reports = []

    async def run() -> None:
        reports.append(await fetched(server, PageStore(tmp_path), Hands()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        tasks.start_soon(run)
    assert [page.name for page in PageStore(tmp_path).pages()] == [GUIDE, LISTED, INDEX, TUTORIAL]
    assert [report.failed for report in reports] == [(), ()]


async def test_a_damaged_page_is_fetched_again_in_full(server: Server, store: PageStore) -> None:
    hands = Hands()
    await fetched(server, store, hands)
    (damaged,) = store.root.glob("*debugging*")
    damaged.write_text("{", encoding="utf-8")
    assert (await fetched(server, store, hands)).fetched == (GUIDE,)
    assert page_of(store, GUIDE).title == "Debugging"


async def test_a_folder_that_becomes_unwritable_ends_the_fetch_with_a_way_out(
    server: Server, store: PageStore
) -> None:
    store.root.mkdir()

    async def replaces_the_folder(request: Request, write: Write) -> None:
        store.root.rename(store.root.with_name("moved"))
        store.root.write_text("")
        await write(answer(200, b"Welcome\n=======\n"))

    server.routes["/sources/v3.7.1/docs/programming-guide/chapter-1/introduction.rst"] = replaces_the_folder
    with pytest.raises(MissingRequirement, match="PYTORCH_TO_TRITON_CACHE"):
        await fetched(server, store, Hands())


def test_the_tag_is_the_release_of_the_version() -> None:
    for version, tag in [
        ("3.7.1", "v3.7.1"),
        ("3.9.0+git0123", "v3.9.0"),
        ("3.6.0.post1", "v3.6.0"),
        ("main", None),
        (None, None),
    ]:
        assert tag_of(version) == tag
        assert bool([*release_files(Origins(), version)]) == (tag is not None)


def test_the_inventory_names_the_pages_not_without_end_and_no_other_places() -> None:
    listed = inventory(
        "index std:doc -1 index.html Welcome",
        "gluon/index std:doc -1 gluon/index.html Gluon",
        "getting-started/tutorials/gluon/intro std:doc -1 getting-started/tutorials/gluon/intro.html Intro",
        "python-api/generated/triton.jit std:doc -1 python-api/generated/triton.jit.html jit",
        "python-api/generated/triton.jit std:doc -1 python-api/generated/triton.jit.html jit",
        "getting-started/tutorials/sg_execution_times std:doc -1 x.html Times",
        "dialects/dialects std:doc -1 dialects/dialects.html Dialects",
        "triton.jit py:function 1 python-api/generated/triton.jit.html#$ -",
        "../../evil std:doc -1 x.html Evil",
        "python-api/../../x std:doc -1 x.html Evil",
        "python-api//example.org std:doc -1 x.html Evil",
        "python-api/x%2e std:doc -1 x.html Evil",
        "https://example.org/python-api/x std:doc -1 x.html Evil",
        "no inventory line",
    )
    pages = [*site_pages(Origins(), VERSION, listed)]
    assert [page.name for page in pages] == [
        "web/main/index",
        "web/main/python-api/generated/triton.jit",
        "web/main/getting-started/tutorials/gluon/intro",
        "web/main/gluon/index",
    ]
    assert pages[1].url == "https://triton-lang.org/main/python-api/generated/triton.jit.html"
    many = inventory(*(f"python-api/generated/f{i} std:doc 1 x.html f" for i in range(5000)))
    assert len([*site_pages(Origins(), VERSION, many)]) == MOST_PAGES


def test_a_damaged_inventory_is_refused() -> None:
    for damaged in [
        b"",
        b"# Sphinx inventory version 1\n\n\n\n",
        inventory("python-api/triton std:doc -1 python-api/triton.html triton")[:-6],
        b"\n".join([*inventory().split(b"\n", 4)[:4], b"no zlib"]),
        inventory("x" * (64 << 20)),
    ]:
        with pytest.raises(ValueError, match="inventory"):
            [*site_pages(Origins(), VERSION, damaged)]
