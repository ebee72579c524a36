"""A covering design: few rows of levels, in which each goal is met, at little cost.

Greedy, after AETG (Cohen, Dalal, Fredman and Patton, IEEE TSE 23(7), 1997): each row starts from a goal that
no row meets yet and takes, factor by factor, the level that meets most of the others. In the end costly rows
are made cheaper where others meet what they no longer do. The packages that make such arrays take neither
costs, nor goals of several strengths, nor levels that stand for whichever of several values fits.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random
from typing import Generic, Protocol, TypeVar

Level = tuple[str, str]
"""A factor and one of its levels."""
Levels = Mapping[str, str]
"""A level of each factor, by the factor's name; of a row also what follows from them."""
Goal = frozenset[Level]
"""Levels that are to meet in a row: two or more."""
Row = TypeVar("Row")
_ORDERS_TRIED = 4
"""Rows that are compared for each goal; each takes its factors in another order."""


class Space(Protocol[Row]):
    """The factors, and how a row is made of their levels."""

    @property
    def factors(self) -> Mapping[str, Sequence[str]]:
        """The levels of each."""

    @property
    def excluded(self) -> Callable[[Goal], Collection[Level]]:
        """Levels that a row for this goal may not have."""

    @property
    def implied(self) -> Callable[[Level], Collection[Level]]:
        """Levels that come with this one."""

    def place(self, levels: Levels, goal: Goal) -> tuple[Levels, Row] | None:
        """An allowed row that meets the goal, near these levels, and the levels that it has."""

    def take(self, levels: Levels, row: Row) -> None:
        """The row is in the design."""

    def tries(self, row: Row) -> Iterable[tuple[str, int]]:
        """What is to stay in some row, beside the goals."""

    def cost(self, row: Row) -> int:
        """How long it takes."""

    def cheaper(self, levels: Levels, row: Row) -> Iterator[tuple[Levels, Row]]:
        """Rows near this one that may stand in its place, and their levels; none where it is cheap."""


@dataclass(frozen=True)
class Placed(Generic[Row]):
    """A row of the design."""

    levels: Levels
    row: Row
    goals: frozenset[int]
    """Those that it meets."""


def cover(space: Space[Row], goals: Iterable[Goal], most: int) -> tuple[list[Row], list[Goal]]:
    """At most `most` rows that meet the goals, the first goals first; and the goals that no row meets."""
    progress = _Progress(space, goals)
    every_goal = frozenset(progress.goals)
    rows: list[Placed[Row]] = []
    impossible: list[Goal] = []
    while progress.goals and len(rows) < most:
        goal = next(iter(progress.goals.values()))
        tried = (space.place(progress.completed(goal), goal) for _ in range(_ORDERS_TRIED))
        placed = [candidate for candidate in tried if candidate is not None]
        if not placed:
            impossible.append(goal)
            progress.forget(goal)
            continue
        levels, row = max(placed, key=lambda candidate: progress.gain(candidate[0]))
        rows.append(Placed(levels, row, progress.among(every_goal, levels)))
        progress.meet(levels)
        space.take(levels, row)

    def cheaper(placed: Placed[Row]) -> Iterator[Placed[Row]]:
        for levels, row in space.cheaper(placed.levels, placed.row):
            yield Placed(levels, row, progress.among(every_goal, levels))

    kept = at_less_cost(space, without_redundant(rows), cheaper)
    return [placed.row for placed in kept], [*impossible, *progress.goals.values()]


def without_redundant(rows: Sequence[Placed[Row]]) -> list[Placed[Row]]:
    """The rows, in their order, without those of which others meet every goal too."""
    met = Counter(goal for placed in rows for goal in placed.goals)
    kept = []
    for placed in rows:
        if all(met[goal] > 1 for goal in placed.goals):
            met.subtract(placed.goals)
        else:
            kept.append(placed)
    return kept


def at_less_cost(
    space: Space[Row],
    rows: Sequence[Placed[Row]],
    cheaper: Callable[[Placed[Row]], Iterator[Placed[Row]]],
) -> list[Placed[Row]]:
    """The rows, the costly ones made cheaper step by step as long as all together meet and try the same."""

    def held(placed: Placed[Row]) -> frozenset[object]:
        return placed.goals.union(space.tries(placed.row))

    met = Counter(chain.from_iterable(map(held, rows)))
    result = list(rows)
    for place in sorted(range(len(rows)), key=lambda place: -space.cost(rows[place].row)):
        while True:
            before = held(result[place])
            spared = (near for near in cheaper(result[place]) if all(met[m] > 1 for m in before - held(near)))
            if (near := next(spared, None)) is None:
                break
            met.subtract(before)
            met.update(held(near))
            result[place] = near
    return result


class _Progress(Generic[Row]):
    """The goals that are still to be met, and how often each level has been taken.

    Levels are bits of a number, goals and rows the numbers that have theirs: thousands are compared.
    """

    def __init__(self, space: Space[Row], goals: Iterable[Goal]) -> None:
        self.space = space
        self._bits: defaultdict[Level, int] = defaultdict(lambda: 1 << len(self._bits))
        self.goals = {self._bits_of(goal): goal for goal in goals}
        self._partners: defaultdict[Level, int] = defaultdict(int)
        """The levels that are still to meet each one in a pair."""
        for first, second in (goal for goal in self.goals.values() if len(goal) == 2):
            self._partners[first] |= self._bits[second]
            self._partners[second] |= self._bits[first]
        self._in_triples = {factor for goal in self.goals.values() if len(goal) > 2 for factor, _ in goal}
        self._taken: Counter[Level] = Counter()
        self._random = Random(0)

    def among(self, goals: Iterable[int], levels: Levels) -> frozenset[int]:
        """Those of the goals that these levels meet."""
        row = self._bits_of(levels.items())
        return frozenset(goal for goal in goals if goal & row == goal)

    def meet(self, levels: Levels) -> None:
        for goal in self.among(self.goals, levels):
            self.forget(self.goals[goal])
        self._taken.update(levels.items())

    def forget(self, goal: Goal) -> None:
        """Leave a goal out of what is still to be met."""
        bits = self._bits_of(goal)
        del self.goals[bits]
        if len(goal) == 2:
            for level in goal:
                self._partners[level] &= ~bits

    def gain(self, levels: Levels) -> int:
        return len(self.among(self.goals, levels))

    def completed(self, goal: Goal) -> Levels:
        """The goal's levels, then factor by factor the level that meets most other goals."""
        excluded = self.space.excluded(goal)
        row = {factor: level for factor, level in goal if factor in self.space.factors}
        others = [factor for factor in self.space.factors if factor not in row]
        self._random.shuffle(others)
        taken = self._bits_of(row.items())
        strong = self._bits_of(item for item in row.items() if item[0] in self._in_triples)
        for factor in others:
            levels = [(factor, level) for level in self.space.factors[factor]]
            allowed = [level for level in levels if level not in excluded]
            best = max(allowed or levels, key=partial(self._worth, row=taken, strong=strong))
            row[factor] = best[1]
            taken |= self._bits[best]
            strong |= self._bits[best] if factor in self._in_triples else 0
        return row

    def _worth(self, level: Level, row: int, strong: int) -> tuple[int, int]:
        """Goals that the level would meet with those of the row; then how seldom it was taken."""
        gained = [level, *self.space.implied(level)]
        pairs = sum((self._partners[item] & row).bit_count() for item in gained)
        triples = sum(self._bits[item] | strong in self.goals for item in gained)
        return pairs + triples, -self._taken[level]

    def _bits_of(self, levels: Iterable[Level]) -> int:
        return sum(self._bits[level] for level in levels)
