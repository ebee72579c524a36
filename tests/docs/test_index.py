"""The index finds what is in the pages, and is there whatever happens to its file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytorch_to_triton.docs.index import Index, passages_of, refuse_without_full_text_search
from pytorch_to_triton.docs.sections import PASSAGE_CHARACTERS
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.schema.page import Page


def page(name: str, text: str) -> Page:
    return Page(name=name, title=name, source="guide", applies_to="Triton 3.7", text=text)


PAGES = (
    page("masks", "# Masks\n\nA load takes a mask.\n"),
    page("tiles", "# Tiles\n\nA program takes a tile; its tail needs masks.\n"),
    page("grids", "# Grids\n\nA launch has many programs.\n"),
)


def found(index: Index, expression: str) -> list[str]:
    """The pages whose passages match, the best first."""
    (scores,) = index.scores([expression])
    ranked = sorted(scores, key=lambda number: -scores[number])
    return [passage.page for passage in index.passages(ranked)]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(PAGES, {"tl.masks": "masks"}, tmp_path)


@pytest.mark.parametrize(
    ("texts", "spellings", "expression", "pages"),
    [
        pytest.param({}, {}, '"masks"', ["masks", "tiles"], id="a name before text"),
        pytest.param({}, {}, '"launched"', ["grids"], id="a stem"),
        pytest.param({}, {"guard.masks": "masks"}, '"guard"', ["masks"], id="a spelling"),
        pytest.param({}, {"masks.guard": "masks"}, '"guard"', [], id="no spelling of a member"),
        pytest.param({"a": "`TensorDescriptor`"}, {}, '"descriptor"', ["a"], id="a part in camel case"),
        pytest.param(
            {"a": "`make_block_ptr`", "b": "ptr, make, block"},
            {},
            '"make_block_ptr"',
            ["a"],
            id="underscores",
        ),
        pytest.param({"a": "`make_block_ptr`"}, {}, '"block"', ["a"], id="a part between underscores"),
    ],
)
def test_pages_are_found_by(
    texts: dict[str, str], spellings: dict[str, str], expression: str, pages: list[str], tmp_path: Path
) -> None:
    more = [page(name, f"# {name}\n\n{text}\n") for name, text in texts.items()]
    assert found(Index([*PAGES, *more], spellings, tmp_path), expression) == pages


def test_an_expression_that_matches_nothing_finds_nothing(index: Index) -> None:
    assert index.scores(['"absent"', '""']) == [{}, {}]


def test_a_short_page_is_one_passage_and_a_long_one_is_cut_at_its_sections() -> None:
    long = page("long", "# Long\n\n## One\n\n" + "word " * 300 + "\n\n## Two\n\n" + "word " * 300)
    assert [passage.section for passage in passages_of(PAGES[0])] == [""]
    assert [passage.section for passage in passages_of(long)] == ["One", "Two"]
    assert all(len(passage.text) <= PASSAGE_CHARACTERS for passage in passages_of(long))


def test_the_same_pages_are_indexed_once_whatever_their_order(tmp_path: Path) -> None:
    first, second = Index(PAGES, {}, tmp_path), Index(PAGES[::-1], {}, tmp_path)
    found(first, '"masks"')
    written = first.path.stat().st_ino
    assert found(second, '"masks"') == ["masks", "tiles"]
    assert (second.path, second.path.stat().st_ino) == (first.path, written)


def test_other_pages_have_another_index(tmp_path: Path) -> None:
    changed = (*PAGES[1:], page("masks", "# Masks\n\nNothing.\n"))
    paths = {
        Index(pages, ways, tmp_path).path
        for pages, ways in ((PAGES, {}), (changed, {}), (PAGES, {"a": "masks"}))
    }
    assert len(paths) == 3


@pytest.mark.parametrize("damage", [b"", b"no database", None], ids=["emptied", "overwritten", "cut"])
def test_a_damaged_index_is_built_again(damage: bytes | None, tmp_path: Path) -> None:
    found(Index(PAGES, {}, tmp_path), '"masks"')
    (path,) = tmp_path.glob("*.sqlite")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert found(Index(PAGES, {}, tmp_path), '"masks"') == ["masks", "tiles"]
    assert path.stat().st_size == len(whole)


def test_an_index_that_is_damaged_or_removed_while_in_use_is_built_again(index: Index) -> None:
    assert found(index, '"masks"') == ["masks", "tiles"]
    index.path.write_bytes(b"no database")
    assert found(index, '"masks"') == ["masks", "tiles"]
    index.path.unlink()
    assert found(index, '"masks"') == ["masks", "tiles"]


def test_many_may_build_an_index_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: found(Index(PAGES, {}, tmp_path), '"masks"'), range(8)))
    assert answers == [["masks", "tiles"]] * 8
    assert [path.suffix for path in tmp_path.iterdir()] == [".sqlite"]


def test_old_indexes_are_removed(tmp_path: Path) -> None:
    indexes = [Index([page("a", f"# A\n\n{number}\n")], {}, tmp_path) for number in range(6)]
    for index in indexes:
        assert found(index, '"a"') == ["a"]
    assert len(list(tmp_path.iterdir())) == 4
    assert indexes[-1].path.exists()


def test_a_python_without_full_text_search_is_refused() -> None:
    with pytest.raises(MissingRequirement, match="no full-text search") as refused:
        refuse_without_full_text_search({"fts3", "json_each"})
    assert "docs read works without it" in refused.value.hint
