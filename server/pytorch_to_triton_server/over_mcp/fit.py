"""A result cut to a number of characters: lists lose their ends, long texts their middles."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

_LARGE_ITEM = 2000
"""A list of items that are larger than this on average keeps them all, cut; others lose the last ones."""
_READABLE = 400
"""A shorter piece of an item is of no use."""
_LEAST_TEXT = 60
_OVERHEAD = 4
"""Characters of JSON between a key, its value and the next key: a colon, a comma, two spaces."""


@dataclass(frozen=True)
class Fitted:
    """What is left of a result, and what is missing."""

    value: dict[str, Any]
    left_out: tuple[str, ...]
    """`findings: 150 of 200 items`, in the order of the result."""


@dataclass(frozen=True)
class _Cutter:
    """Cuts values and notes what it left out."""

    left_out: list[str] = field(default_factory=list)

    def cut(self, value: Any, room: int, name: str) -> Any:
        """The value in about `room` characters."""
        if size(value) <= room:
            return value
        match value:
            case str():
                return self._text(value, room, name)
            case dict() if room // len(value) >= _LEAST_TEXT or not name:
                return self._fields(value, room, name)
            case dict():
                return dict(self._head(list(value.items()), room, name))
            case list() if size(value) > _LARGE_ITEM * len(value) and room >= _READABLE * len(value):
                rooms = _rooms([size(item) for item in value], [1.0] * len(value), room)
                return [
                    self.cut(item, share, f"{name}[{index}]")
                    for index, (item, share) in enumerate(zip(value, rooms, strict=True))
                ]
            case list():
                return self._head(value, room, name) or [self.cut(value[0], room, f"{name}[0]")]
        return value

    def _fields(self, value: dict[str, Any], room: int, name: str) -> dict[str, Any]:
        """Every field: the first ones matter most, and get the most room."""
        around = sum(size(key) + _OVERHEAD for key in value)
        sizes = [size(item) for item in value.values()]
        large = [index for index, one in enumerate(sizes) if one > _LEAST_TEXT]
        weights = [1.0] * len(sizes)
        for rank, index in enumerate(large):
            weights[index] = 1 / (1 + rank)
        rooms = _rooms(sizes, weights, room - around)
        return {
            key: self.cut(item, share, f"{name}.{key}" if name else key)
            for (key, item), share in zip(value.items(), rooms, strict=True)
        }

    def _head(self, items: Sequence[Any], room: int, name: str) -> list[Any]:
        """The first items that fit."""
        kept = list(_while_they_fit(items, room))
        self.left_out.append(f"{name}: {len(items) - len(kept)} of {len(items)} items")
        return kept

    def _text(self, text: str, room: int, name: str) -> str:
        """Its beginning and its end, where an error or outcome usually is."""
        kept = int(len(text) * room / size(text))
        short = text
        while size(short) > room and kept > _LEAST_TEXT:
            gone = len(text) - kept
            short = (
                f"{text[: kept * 2 // 3]} [… {gone} characters left out …] {text[len(text) - kept // 3 :]}"
            )
            kept = kept * 9 // 10
        if short is text:
            gone, short = len(text), f"{text[:_LEAST_TEXT]} […]"
        self.left_out.append(f"{name}: {gone} of {len(text)} characters")
        return short


def fit_value(value: dict[str, Any], most: int) -> Fitted:
    """A result in at most about `most` characters of JSON, with all its fields."""
    cutter = _Cutter()
    return Fitted(cutter.cut(value, most, ""), tuple(cutter.left_out))


def fit_text(text: str, most: int) -> str:
    """A text in at most about `most` characters, readable by any client."""
    cut: str = _Cutter().cut(plain(text), most, "text")
    return cut


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


def _while_they_fit(items: Sequence[Any], room: int) -> Iterator[Any]:
    for item in items:
        room -= size(item) + _OVERHEAD
        if room < 0:
            return
        yield item


def _rooms(sizes: Sequence[int], weights: Sequence[float], room: int) -> list[int]:
    """How much of the room each gets: all it needs if that is little, else a share by its weight."""
    rooms = list(sizes)
    open_ones = set(range(len(sizes)))
    while open_ones:
        unit = max(0, room) / sum(weights[index] for index in open_ones)
        whole = {index for index in open_ones if sizes[index] <= unit * weights[index]}
        if not whole:
            for index in open_ones:
                rooms[index] = int(unit * weights[index])
            break
        room -= sum(sizes[index] for index in whole)
        open_ones -= whole
    return rooms
