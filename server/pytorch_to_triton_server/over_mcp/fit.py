"""A result cut to a number of characters: lists lose their ends, long texts their middles."""

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

_CHARACTERS_OF_ITEM = 128
"""Where texts may have so many characters for each item of a list, items are dropped before they are cut."""
_LEAST_TEXT = 60


@dataclass(frozen=True)
class Fitted:
    """What is left of a result, and what is missing."""

    value: dict[str, Any]
    left_out: tuple[str, ...]
    """`findings: 150 of 200 items`, in the order of the result."""


@dataclass(frozen=True)
class _Cut:
    """Cuts values, all at one measure, and notes what it left out."""

    characters: int
    """Of each text. Of lists and inner objects so many items are kept as fit, or one for each
    _CHARACTERS_OF_ITEM, if that is more."""
    left_out: list[str]

    def of(self, value: Any, name: str = "") -> Any:
        match value:
            case str() if len(value) > max(self.characters, _LEAST_TEXT):
                return self._text(value, name)
            case dict():
                items = self._first(list(value.items()), name) if name else value.items()
                return {key: self.of(item, f"{name}.{key}" if name else key) for key, item in items}
            case list():
                items = self._first(value, name)
                return [self.of(item, f"{name}[{index}]") for index, item in enumerate(items)]
        return value

    def _first(self, items: Sequence[Any], name: str) -> Sequence[Any]:
        fitting = takewhile(lambda total: total <= self.characters, accumulate(map(size, items)))
        kept = items[: max(len(list(fitting)), self.characters // _CHARACTERS_OF_ITEM)]
        if len(kept) < len(items):
            self.left_out.append(f"{name}: {len(items) - len(kept)} of {len(items)} items")
        return kept

    def _text(self, text: str, name: str) -> str:
        """Its beginning and its end, where an error or outcome usually is."""
        beginning, end = self.characters * 2 // 3, len(text) - self.characters // 3
        if self.characters < _LEAST_TEXT:
            beginning, end = self.characters, len(text)
        gone = end - beginning
        self.left_out.append(f"{name}: {gone} of {len(text)} characters")
        return f"{text[:beginning]} [… {gone} characters left out …] {text[end:]}".rstrip(" ")


def fit_value(value: dict[str, Any], most: int) -> Fitted:
    """A result in at most about `most` characters of JSON, with all its fields."""
    if size(value) <= most:
        return Fitted(value, ())
    fitting = bisect_right(range(most), most, key=lambda measure: size(_Cut(measure, []).of(value)))
    cut = _Cut(max(0, fitting - 1), [])
    return Fitted(cut.of(value), tuple(cut.left_out))


def fit_text(text: str, most: int) -> str:
    """A text in at most about `most` characters, readable by any client."""
    return str(fit_value({"text": plain(text)}, most).value["text"])


def size(value: Any) -> int:
    """Characters of it as JSON."""
    return len(json.dumps(value, ensure_ascii=False))


def plain(value: Any) -> Any:
    """JSON that any client can read: no lone surrogates, which UTF-8 cannot encode, no infinite numbers."""
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {plain(key): plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
    return value
