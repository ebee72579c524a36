"""Search: the passages that answer a question best."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from pytorch_to_triton.docs.installed import MISSING, NAMES
from pytorch_to_triton.docs.library import Index, Library, Passage, passages_of
from pytorch_to_triton.docs.read import quote
from pytorch_to_triton.docs.words import Question, ask, refuse_long
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.documentation import Form, Hit, MissingEntry, SearchResult
from pytorch_to_triton.schema.page import Page, Source
from pytorch_to_triton.triton_api.fixes import spelling_of

EXCERPT_CHARACTERS = 280

_UNCOVERED = 0.35
"""What a passage is worth that has the least of the question's words; one with all of them is worth 1."""
_FETCHED = 0.85
"""What a fetched page is worth, where a guide is worth 1: it may apply to another Triton."""
_DOT = 0.92
"""What each dot in an installed name costs: of functions of one name, the shortest path is the usual one."""
_LISTING = 0.6
"""What a list of names is worth: it has a word of nearly every question, and answers little."""
_MATCHING = 0.25
"""A page with a smaller share of the best score does not match."""
_FURTHER = 0.6
"""A section with this share of the best passage's score is named too."""
_NAMED = 2.0
"""A page of exactly a name in the question is worth this many times the best."""
_ECHOED = 80
"""Characters of a question that a message repeats."""
_MARKUP = re.compile(r"^#{1,6} .*$|^```.*$|^\|[ |:-]*$", re.MULTILINE)
_CODE = re.compile(r"^```python[^\n]*\n.*?^```$", re.DOTALL | re.MULTILINE)
_WRONG = re.compile(r"^```python wrong\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OPENS, _CLOSES = "(wrong\0code)", "(end\0of\0wrong\0code)"
"""What stands around wrong code, in one word each: an excerpt is cut between words."""
_DOTTED = re.compile(r"\b[A-Za-z]\w*+(?:\.\w++)++")
_IDENTIFIER = re.compile(r"[@`]*[A-Za-z_][\w.]*(?:\(.*\))?`*")


@dataclass(frozen=True)
class SearchRequest:
    """What is searched for, and what is wanted of it."""

    query: str
    limit: int = 6
    """Hits a page of the result."""
    page: int = 1
    form: Form = "concise"
    source: Source | None = None
    """Only pages of this source."""


@dataclass(frozen=True)
class _Match:
    """A page that fits, with its fitting passages and what each is worth, the best first."""

    page: Page
    score: float
    passages: tuple[tuple[Passage, float], ...]


def search(library: Library, request: SearchRequest) -> SearchResult:
    """The pages that fit a question, each with its best passage, a page of `limit` at a time.

    Raises BadInput for a question without a word or too long, and for a page of the result that is not there.
    """
    refuse_long("query", request.query)
    question = ask(request.query)
    if not question.words:
        raise BadInput(
            f"There is no word in {_quote(request.query)}.",
            "Ask in words, e.g. `load with boundary`, or for a name.",
        )
    ranked = _rank(library, request, question)
    pages = max(1, -(-len(ranked) // request.limit))
    if not 1 <= request.page <= pages:
        raise BadInput(
            f"The result has {pages} pages, so there is no page {request.page}.",
            f"Ask for page 1 to {pages}.",
        )
    on_page = ranked[(request.page - 1) * request.limit :][: request.limit]
    hits = tuple(_hit(match, request.form, question) for match in on_page)
    names = dict.fromkeys(_DOTTED.findall(request.query))
    missing = tuple(entry for name in names if (entry := library.missing_name(name)))
    # Words of a sentence are like names by chance alone.
    is_name = not ranked and _IDENTIFIER.fullmatch(request.query.strip())
    nearest = library.nearest(request.query) if is_name else ()
    return SearchResult(
        summary=_summary(library, request, ranked, missing, nearest),
        next_step=_next_step(request, hits, pages, nearest),
        hits=hits,
        total=len(ranked),
        page=request.page,
        pages=pages,
        nearest=nearest,
        missing=(*missing, *library.missing, *(() if ranked else library.unfetched)),
    )


def _rank(library: Library, request: SearchRequest, question: Question) -> list[_Match]:
    """The pages that fit, the best first."""
    worth = _worth(library.index, question)
    by_page: dict[str, list[tuple[Passage, float]]] = {}
    for passage, score in sorted(worth, key=lambda row: -row[1]):
        by_page.setdefault(passage.page.name, []).append((passage, score))
    top = max((score for _, score in worth), default=0.0)
    named = _named(library, request.query)
    for page in named:
        by_page.setdefault(page.name, [(next(passages_of(page)), 0.0)])
    matches = []
    for best in by_page.values():
        (passage, score), *_ = best
        score += _NAMED * top if passage.page in named else 0.0
        if score >= _MATCHING * top and request.source in (None, passage.page.source):
            matches.append(_Match(passage.page, score, tuple(best)))
    return sorted(matches, key=lambda match: (-match.score, match.page.name))


def _named(library: Library, query: str) -> list[Page]:
    """The installed pages that the query names: as a whole, or by dotted names in it."""
    named = [library.named(name) for name in (query, *_DOTTED.findall(query))]
    first = (next((page for page in pages if page.source == "installed"), None) for pages in named)
    return [page for page in first if page is not None]


def _worth(index: Index, question: Question) -> list[tuple[Passage, float]]:
    """The passages that match, in their order, with what each is worth."""
    scores = cache(index.scores)
    by_passage: dict[int, list[float]] = {}
    for ways in question.words.values():
        best: dict[int, float] = {}
        for way in ways:
            for number, score in scores(way.expression).items():
                best[number] = max(best.get(number, 0.0), way.weight * score)
        for number, score in best.items():
            by_passage.setdefault(number, []).append(score)
    worth = []
    for number, of_words in sorted(by_passage.items()):
        pairs = sum(way.weight * scores(way.expression).get(number, 0.0) for way in question.pairs)
        covered = _UNCOVERED + (1 - _UNCOVERED) * len(of_words) / len(question.words)
        passage = index.passages[number]
        worth.append((passage, (sum(of_words) + pairs) * covered * _prior(passage.page)))
    return worth


def _prior(page: Page) -> float:
    """What a page is worth before anything is asked."""
    if page.name in (NAMES, MISSING):
        return _LISTING
    if page.source == "fetched":
        return _FETCHED
    return _DOT ** page.name.count(".") if page.source == "installed" else 1.0


def _hit(match: _Match, form: Form, question: Question) -> Hit:
    page = match.page
    (best, most), *others = match.passages
    further = (passage.section for passage, score in others if score >= _FURTHER * most)
    # The code of an installed page is the signature.
    text = best.text if page.source == "installed" else _prose(best.text, question)
    return Hit(
        **page.model_dump(include={"title", "applies_to", "source"}),
        name=page.name,
        section=best.section,
        excerpt=quote(page, best.text) if form == "full" else excerpt(text, question),
        score=round(match.score, 2),
        other_sections=tuple(dict.fromkeys(name for name in further if name not in ("", best.section))),
        untrusted=page.source == "fetched",
    )


def excerpt(text: str, question: Question, characters: int = EXCERPT_CHARACTERS) -> str:
    """The stretch of some Markdown with the most of the question's words, on one line; wrong code says so."""
    text = _WRONG.sub(lambda code: f"{_OPENS} {code[1]} {_CLOSES}", text)
    text = " ".join(_MARKUP.sub("", text).split())
    if len(text) <= characters:
        return text.replace("\0", " ")
    places = sorted(
        (match.start(), number)
        for number, pattern in enumerate(question.patterns)
        for match in pattern.finditer(text)
    )
    first = _densest(places, characters - characters // 4)
    # Some words before the first match, and whole words only.
    start = max(0, min(first - characters // 5, len(text) - characters))
    start = text.rfind(" ", 0, start + 1) + 1
    end = start + characters
    end = len(text) if end >= len(text) else max(text.rfind(" ", start, end), start + 1)
    within = text.rfind(_OPENS, 0, start) > text.rfind(_CLOSES, 0, start)
    before = ("… " if start else "") + (f"{_OPENS} " if within else "")
    return f"{before}{text[start:end]}{' …' if end < len(text) else ''}".replace("\0", " ")


def _prose(text: str, question: Question) -> str:
    """Markdown without its code, unless all that is asked for is in the code."""
    prose = _CODE.sub("", text)
    return prose if any(pattern.search(prose) for pattern in question.patterns) else text


def _densest(places: Sequence[tuple[int, int]], width: int) -> int:
    """Where a stretch of `width` starts that has the most of the different words; 0 where there are none."""

    def words(start: int) -> int:
        return len({word for place, word in places if start <= place < start + width})

    return max((start for start, _ in places), key=words, default=0)


def _quote(query: str) -> str:
    """A question in quotation marks, a long one cut."""
    return repr(query if len(query) <= _ECHOED else f"{query[: _ECHOED - 1]}…")


def _summary(
    library: Library,
    request: SearchRequest,
    matches: Sequence[_Match],
    missing: Sequence[MissingEntry],
    nearest: Sequence[str],
) -> str:
    """What to write instead of missing names, then what was found."""
    parts = [f"{entry.what} {entry.fix}" for entry in missing]
    where = f"{len(library.pages)} pages" if request.source is None else f"{request.source} pages"
    if not matches:
        parts.append(f"None of the {where} contains a word of {_quote(request.query)}.")
        parts += [f"Did you mean {spelling_of(nearest[0])}?"] if nearest and not missing else []
        return " ".join(parts)
    fit = "1 page matches" if len(matches) == 1 else f"{len(matches)} pages match"
    return " ".join([*parts, f"{fit} {_quote(request.query)}; the best is {matches[0].page.name}."])


def _next_step(request: SearchRequest, hits: Sequence[Hit], pages: int, nearest: Sequence[str]) -> str:
    if nearest:
        return f"docs read {spelling_of(nearest[0])}"
    if not hits:
        return "Ask in fewer or other words, or for a name such as tl.load; docs read names lists all names."
    more = f" More hits are on page {request.page + 1}." if request.page < pages else ""
    return f"Read on with docs read, which takes the name and the section of a hit: {hits[0].name}.{more}"
