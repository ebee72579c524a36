"""What there is to read is reported with what is missing; what can be had is had without the rest."""

import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pytorch_to_triton import places
from pytorch_to_triton.docs.library import Library, collect, open_library, status
from pytorch_to_triton.docs.page_store import PageStore, StoredPage
from pytorch_to_triton.docs.search import SearchRequest, search
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.page import Page
from pytorch_to_triton.triton_api.surface import Surface

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def fetched(name: str, applies_to: str, days_ago: int) -> Page:
    return Page(
        name=f"web/{name}",
        title=name,
        source="fetched",
        applies_to=applies_to,
        text=f"# {name}\n\nQuokka.\n",
        url=f"https://triton.test/{name}",
        fetched=NOW - timedelta(days=days_ago),
    )


@pytest.fixture
def own_cache(cache: Path, installed: Surface, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, in which nothing but Triton's names was read yet."""
    shutil.copytree(cache / "api", tmp_path / "api")
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", str(tmp_path))
    return tmp_path


async def test_without_fetched_pages_the_command_that_gets_them_is_reported(library: Library) -> None:
    reported = status(library, NOW)
    assert reported.triton is not None
    assert reported.names
    assert reported.guides
    assert reported.fetched == ()
    assert [lack.what for lack in reported.missing] == ["No public pages have been fetched."]
    assert reported.next_step.startswith("docs fetch")
    assert reported.triton in reported.summary


async def test_fetched_pages_are_reported_by_version_with_their_ages(installed: Surface) -> None:
    pages = [fetched("a", "Triton 3.7", 3), fetched("b", "Triton 3.7", 5), fetched("c", "main", 1)]
    reported = status(collect(installed, pages), NOW)
    assert [(group.applies_to, group.pages) for group in reported.fetched] == [("Triton 3.7", 2), ("main", 1)]
    assert reported.fetched[0].oldest == NOW - timedelta(days=5)
    assert reported.fetched[0].newest == NOW - timedelta(days=3)
    assert reported.missing == ()


async def test_pages_that_were_long_not_confirmed_are_reported(installed: Surface) -> None:
    reported = status(collect(installed, [fetched("a", "main", 40), fetched("b", "main", 1)]), NOW)
    assert [lack.what for lack in reported.missing] == [
        "1 fetched page was last confirmed more than 30 days ago."
    ]


async def test_a_python_without_triton_still_has_the_guides_and_is_reported_so(
    worker: WorkerClient, tmp_path: Path
) -> None:
    library = await open_library(worker, Runtime(python=str(tmp_path / "python"), interpreter=True))
    reported = status(library, NOW)
    assert (reported.triton, reported.names) == (None, 0)
    assert reported.guides
    assert "The installed Triton cannot be read" in reported.missing[0].what
    assert "torch and triton" in reported.missing[0].fix
    result = search(library, SearchRequest("masks at the boundary"))
    assert result.hits[0].name == "guides/masks"
    assert result.missing[0] == reported.missing[0]


async def test_what_was_read_is_kept_until_a_page_changes(worker: WorkerClient, own_cache: Path) -> None:
    runtime = Runtime(python=sys.executable, interpreter=True, devices="0")
    first = await open_library(worker, runtime)
    assert await open_library(worker, runtime) is first
    PageStore(places.docs()).put(StoredPage(page=fetched("a", "main", 1), conditions={}))
    second = await open_library(worker, runtime)
    assert "web/a" in second.pages
    assert [hit.name for hit in search(second, SearchRequest("quokka")).hits] == ["web/a"]
