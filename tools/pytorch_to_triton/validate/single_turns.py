"""Loops of a candidate's kernels that no case repeats: what they carry from turn to turn was not tried."""

from collections.abc import Iterable

from pytorch_to_triton.schema.verdict import Skip
from pytorch_to_triton.worker.wire.observation import Observation

WHY = "no size that was tried takes a second turn; a larger one may"


def loops_of_one_turn(observations: Iterable[Observation], file: str) -> tuple[Skip, ...]:
    """The loops in the file that were reached and took one turn at most, by line."""
    most: dict[tuple[int, str], int] = {}
    for loop in (loop for observation in observations for loop in observation.loops if loop.file == file):
        place = (loop.line, loop.function)
        most[place] = max(most.get(place, 0), loop.turns)
    single = sorted(place for place, turns in most.items() if turns <= 1)
    return tuple(Skip(what=second_turn(line, function), why=WHY) for line, function in single)


def second_turn(line: int, function: str) -> str:
    """What was not tried, as a verdict lists it."""
    return f"a second turn of the loop in line {line} of {function}"
