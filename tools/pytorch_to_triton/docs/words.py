"""A question in a person's words as expressions of SQLite's full-text search.

The index splits names at underscores and dots, so `make_block_ptr` is there as three words in a row: a name
is found whole as a phrase, and by its parts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pytorch_to_triton.errors import BadInput

SYNONYMS = tuple(
    tuple(row.split(", "))
    for row in Path(__file__).with_name("synonyms.txt").read_text(encoding="utf-8").splitlines()
)
"""Rows of words and phrases that the field uses for one thing, or for closely related things. A question with
one of them finds the others too, with less weight."""

SYNONYM = 0.5
"""What a synonym counts, where the word itself counts 1."""
PART = 0.4
"""What a part of a name counts."""
BEGINNING = 0.3
"""What a longer word counts that begins so."""
PAIR = 0.6
"""What two words in a row count in addition to each alone."""

MOST_CHARACTERS = 1000
"""Of a question or a name."""

_LONG_ENOUGH = 4
"""Letters of a word that longer ones are found by."""
_WORD = re.compile(r"\w+(?:\.\w+)*")
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"\b[A-Z]+[a-z0-9]+(?:[A-Z][a-z0-9]*)+\b")
_HUMP = re.compile(r"[A-Z]+[a-z0-9]*")
_BRITISH = re.compile(r"(?<=[a-z]{4})is(?=(?:e|es|ed|er|ing|ation|ations)\b)")
_EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about all also am an and any are as at be been but by can could do does each for from get give
        given had has have how i if in into is it its kernel kernels make many me much must my need no not
        of on one or our should so some than that the their them then there these they this tl to triton use
        used using want was way we what when where which who why will with without would write writing you
        your
        """,
    )
)
"""Words of a question that do not narrow it down; nearly every page is about a kernel in Triton."""


@dataclass(frozen=True)
class Alternative:
    """One way to find a word: an expression of the full-text search, and what a match of it counts."""

    expression: str
    weight: float


@dataclass(frozen=True)
class Question:
    """What is searched for."""

    words: Mapping[str, tuple[Alternative, ...]]
    """Each with the ways to find it."""
    pairs: tuple[Alternative, ...]
    """Words that stand in a row in the question: pages that have them so come first."""

    @property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """Where the words stand in a text, one pattern a word."""
        roots = (root(word).replace("iz", "i[sz]").replace(".", r"\.") for word in self.words)
        return tuple(re.compile(rf"(?<![a-z0-9]){part}", re.IGNORECASE) for part in roots)


def index_text(text: str) -> str:
    """A text as the index reads it: American spelling, `TensorDescriptor` also as `Tensor Descriptor`."""
    return american(_CAMEL.sub(lambda name: f"{name[0]} {' '.join(_HUMP.findall(name[0]))}", text))


def ask(text: str) -> Question:
    """A question of any text; without words where it has none that say something."""
    spelled = [american(word) for word in _WORD.findall(text)]
    useful = [word for word in spelled if word.lower() not in _EMPTY_WORDS] or spelled
    asked = _comparable(text)
    rows = [row for row in SYNONYMS if any(_comparable(phrase) in asked for phrase in row)]
    in_a_row = {*pairwise(spelled)}
    return Question(
        words={word: tuple(_alternatives(word, rows)) for word in dict.fromkeys(useful)},
        pairs=tuple(
            Alternative(quote_phrase(" ".join(pair)), PAIR) for pair in pairwise(useful) if pair in in_a_row
        ),
    )


def refuse_long(what: str, text: str) -> None:
    """Raises BadInput for a very long text: the time of a search grows with the words."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput(
            f"The {what} has {len(text)} characters; at most {MOST_CHARACTERS} are read.",
            "Ask in a few words, e.g. `load with boundary`, or for a name.",
        )


def quote_phrase(text: str) -> str:
    """A phrase of the full-text search: none of its characters is an operator."""
    return '"' + text.replace('"', " ").replace("\0", " ") + '"'


def american(text: str) -> str:
    """With z where British spelling has s: specialisation, vectorised."""
    return _BRITISH.sub("iz", text)


def root(word: str) -> str:
    """A word without its ending, in small letters: masks, masked and masking have one root."""
    word = word.lower()
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word


def _alternatives(word: str, rows: Sequence[tuple[str, ...]]) -> Iterator[Alternative]:
    yield Alternative(quote_phrase(word), 1.0)
    if len(word) >= _LONG_ENOUGH:
        yield Alternative(f"{quote_phrase(word)} *", BEGINNING)
    parts = [
        part for part in dict.fromkeys(_parts(word)) if part.lower() not in _EMPTY_WORDS | {word.lower()}
    ]
    roots = set(map(root, _parts(word)))
    synonyms = [row for row in rows if roots & {root(part) for phrase in row for part in _parts(phrase)}]
    for phrases, weight in ((parts, PART), *((row, SYNONYM) for row in synonyms)):
        if phrases:
            yield Alternative(" OR ".join(map(quote_phrase, phrases)), weight)


def _comparable(text: str) -> str:
    """The roots of the words that say something, a space around each: phrases are compared by it."""
    roots = [root(part) for part in _parts(text) if part.lower() not in _EMPTY_WORDS]
    return f" {' '.join(roots)} "


def _parts(text: str) -> list[str]:
    """The words of a text, and those in its names: make, block and ptr for make_block_ptr."""
    return _PART.findall(index_text(text))
