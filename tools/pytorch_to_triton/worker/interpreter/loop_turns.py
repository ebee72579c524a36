"""How many turns the loops of interpreted kernels take: what a loop carries shows from its second turn on."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

Place = tuple[str, str, int]
"""A loop's file, function and line."""
MOST_TURNS: dict[Place, int] = {}
"""Of each loop that was reached in this process, the turns of its longest run."""


def count_turns(values: Iterable[Any]) -> Iterator[Any]:
    """The values of a loop, which is counted at the place that calls this."""
    frame = sys._getframe(1)
    return turns_of(values, (frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))


def turns_of(values: Iterable[Any], place: Place) -> Iterator[Any]:
    turns = 0
    for value in values:
        turns += 1
        yield value
    MOST_TURNS[place] = max(MOST_TURNS.get(place, 0), turns)


def most_turns() -> list[dict[str, Any]]:
    """`{"file": path, "function": name, "line": of the loop, "turns": of its longest run}` of each loop."""
    return [
        {"file": file, "function": function, "line": line, "turns": turns}
        for (file, function, line), turns in MOST_TURNS.items()
    ]
