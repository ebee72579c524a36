"""Long and odd questions are answered or refused; the time that one takes does not grow with its square."""

from contextlib import suppress
from functools import partial

import pytest

from pytorch_to_triton.docs.library import Library
from pytorch_to_triton.docs.read import read
from pytorch_to_triton.docs.restructured_text import from_restructured_text
from pytorch_to_triton.docs.search import SearchRequest, search
from pytorch_to_triton.docs.sections import sections_of
from pytorch_to_triton.docs.words import MOST_CHARACTERS, ask
from pytorch_to_triton.errors import BadInput

pytestmark = pytest.mark.anyio

MILLION = 10**6
PIECES = [*'a(`@._A \0\ud800"*', "()", "a(", "a.", "aA", "is", "tl."]


async def test_a_question_of_a_million_characters_is_refused_with_the_most_that_is_read(
    library: Library,
) -> None:
    for piece in PIECES:
        text = piece * (MILLION // len(piece))
        for asking in (partial(search, library, SearchRequest(text)), partial(read, library, text)):
            with pytest.raises(BadInput, match=f"at most {MOST_CHARACTERS}"):
                asking()
    with pytest.raises(BadInput, match="The section has 1000000 characters"):
        read(library, "masks", "a" * MILLION)


async def test_the_longest_question_that_is_read_is_answered(library: Library) -> None:
    for piece in PIECES:
        text = piece * (MOST_CHARACTERS // len(piece))
        for asking in (partial(search, library, SearchRequest(text)), partial(read, library, text)):
            with suppress(BadInput):
                assert asking().summary


async def test_names_and_words_of_any_length_are_taken_apart(library: Library) -> None:
    for piece in ["a", "(", "()", "`", "a.", "A", "aaaais"]:
        text = piece * (MILLION // 5 // len(piece)) + "!"
        assert library.named(text) == ()
        assert library.missing_name(text) is None
        assert ask(text) is not None


async def test_a_fetched_page_of_one_long_line_is_read(library: Library) -> None:
    assert "<" in from_restructured_text(f":ref:`{'<' * MILLION}`\n")
    assert sections_of("`" * MILLION + "\n# b\n")
