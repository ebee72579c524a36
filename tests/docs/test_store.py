"""The page store keeps pages whole, whoever writes at once and whatever happens to its files."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytorch_to_triton import places
from pytorch_to_triton.docs.page_store import PageStore, StoredPage
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.schema.page import Page

WHEN = datetime(2026, 11, 21, 12, tzinfo=UTC)


def entry(name: str) -> StoredPage:
    return StoredPage(page=page(name), conditions={})


def page(name: str, text: str = "# Title\n\nText.\n") -> Page:
    return Page(name=name, title="Title", source="fetched", applies_to="main", text=text, fetched=WHEN)


def file_of(store: PageStore) -> Path:
    (path,) = store.root.glob("*.json")
    return path


@pytest.fixture
def store(tmp_path: Path) -> PageStore:
    return PageStore(tmp_path / "pages")


def test_what_was_never_fetched_is_not_there_and_nothing_is_made(store: PageStore) -> None:
    assert (store.pages(), store.entry("web/a")) == ([], None)
    assert not store.root.exists()


@pytest.mark.parametrize(
    "name",
    ["../../escape", "/etc/passwd", "web/" + "x" * 500, "a\0b", "CON", "..", "web/ü?*:|", "a\\b", " "],
)
def test_any_name_is_one_file_of_the_folder(store: PageStore, name: str) -> None:
    store.put(entry(name))
    assert store.pages() == [page(name)]
    assert file_of(store).parent == store.root


def test_names_that_differ_in_case_alone_are_different_files_on_every_system(store: PageStore) -> None:
    store.put(entry("web/Tensor"))
    store.put(entry("web/tensor"))
    assert len({path.name.lower() for path in store.root.iterdir()}) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace(b'"format":3', b'"format":1').replace(b'"format": 3', b'"format": 1'),
        lambda text: b"",
        lambda text: b"\xff\xfe" + text,
        lambda text: b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_no_page_and_the_others_stay(
    store: PageStore, damage: Callable[[bytes], bytes]
) -> None:
    store.put(entry("web/a"))
    path = file_of(store)
    store.put(entry("web/z"))
    before = path.read_bytes()
    path.write_bytes(damage(before))
    assert path.read_bytes() != before
    assert [kept.name for kept in store.pages()] == ["web/z"]
    store.put(entry("web/a"))
    assert [kept.name for kept in store.pages()] == ["web/a", "web/z"]


def test_a_folder_that_cannot_be_written_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = PageStore(tmp_path / "file" / "pages")
    with pytest.raises(MissingRequirement, match="PYTORCH_TO_TRITON_CACHE"):
        store.put(entry("web/a"))
    assert store.pages() == []


def test_pages_lie_in_the_checkout_unless_the_cache_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_TO_TRITON_CACHE", str(tmp_path))
    assert places.docs() == tmp_path / "docs"
    monkeypatch.delenv("PYTORCH_TO_TRITON_CACHE")
    assert places.docs() == Path(__file__).parents[2] / "docs_cache" / "fetched"
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "site-packages" / "pytorch_to_triton")
    assert places.docs() == places.cache() / "docs"
