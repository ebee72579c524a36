"""The index finds what is in the pages."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from pytorch_to_triton.docs.library import Index, passages_of
from pytorch_to_triton.docs.sections import PASSAGE_CHARACTERS
from pytorch_to_triton.schema.page import Page


def page(name: str, text: str) -> Page:
    return Page(name=name, title=name, source="guide", applies_to="Triton 3.7", text=text)


PAGES = (
    page("masks", "# Masks\n\nA load takes a mask.\n"),
    page("tiles", "# Tiles\n\nA program takes a tile; its tail needs masks.\n"),
    page("grids", "# Grids\n\nA launch has many programs.\n"),
)


def pages_for(index: Index, expression: str) -> list[str]:
    """The pages whose passages match, the best first."""
    scores = index.scores(expression)
    return [index.passages[number].page.name for number in sorted(scores, key=lambda number: -scores[number])]


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
    texts: dict[str, str], spellings: dict[str, str], expression: str, pages: list[str]
) -> None:
    more = [page(name, f"# {name}\n\n{text}\n") for name, text in texts.items()]
    assert pages_for(Index([*PAGES, *more], spellings), expression) == pages


def test_many_may_search_at_once() -> None:
    index = Index(PAGES, {})
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: pages_for(index, '"masks"'), range(64)))
    assert answers == [["masks", "tiles"]] * 64


def test_a_short_page_is_one_passage_and_a_long_one_is_cut_at_its_sections() -> None:
    long = page("long", "# Long\n\n## One\n\n" + "word " * 300 + "\n\n## Two\n\n" + "word " * 300)
    assert [passage.section for passage in passages_of(PAGES[0])] == [""]
    assert [passage.section for passage in passages_of(long)] == ["One", "Two"]
    assert all(len(passage.text) <= PASSAGE_CHARACTERS for passage in passages_of(long))
