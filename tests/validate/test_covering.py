"""A covering design: every pair of levels meets, in few rows, and what cannot meet is named."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from math import prod
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytorch_to_triton.validate.covering import Goal, Level, Levels, cover


class Table:
    """Rows that are just their levels; some pairs are forbidden, and a level may be exchanged for another."""

    def __init__(self, sizes: Collection[int], forbidden: Collection[Goal] = ()) -> None:
        self.factors = {
            f"f{place}": [str(level) for level in range(size)] for place, size in enumerate(sizes)
        }
        self.forbidden = forbidden
        self.taken: list[Levels] = []

    def goals(self) -> list[Goal]:
        levels = [(factor, level) for factor, levels in self.factors.items() for level in levels]
        return [frozenset((a, b)) for a, b in combinations(levels, 2) if a[0] != b[0]]

    def excluded(self, goal: Goal) -> Collection[Level]:
        return ()

    def implied(self, level: Level) -> Collection[Level]:
        return ()

    def place(self, levels: Levels, goal: Goal) -> tuple[Levels, Levels] | None:
        broken = any(pair <= levels.items() for pair in self.forbidden)
        return None if broken else (levels, levels)

    def take(self, levels: Levels, row: Levels) -> None:
        self.taken.append(row)

    def tries(self, row: Levels) -> Iterable[tuple[str, int]]:
        return ()

    def cost(self, row: Levels) -> int:
        return 1

    def cheaper(self, levels: Levels, row: Levels) -> Iterator[tuple[Levels, Levels]]:
        return iter(())


class Priced(Table):
    """A row costs the product of its levels, each one more; what it tries beside the goals is their sum."""

    def tries(self, row: Levels) -> Iterable[tuple[str, int]]:
        return [("sum", sum(map(int, row.values())))]

    def cost(self, row: Levels) -> int:
        return prod(1 + int(level) for level in row.values())

    def cheaper(self, levels: Levels, row: Levels) -> Iterator[tuple[Levels, Levels]]:
        for factor, level in row.items():
            if level != "0":
                near = {**row, factor: str(int(level) - 1)}
                yield near, near


def covered(table: Any, goals: Sequence[Goal], most: int = 100) -> tuple[list[Any], list[Goal]]:
    return cover(table, goals, most)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=5))
def test_every_pair_meets_in_few_rows_none_of_which_is_to_spare(sizes: list[int]) -> None:
    table = Table(sizes)
    rows, unmet = covered(table, table.goals())
    assert unmet == []
    for goal in table.goals():
        assert any(goal <= row.items() for row in rows)
    for row in rows:
        met = [goal for goal in table.goals() if goal <= row.items()]
        assert any(sum(goal <= other.items() for other in rows) == 1 for goal in met)
    first, second = sorted(sizes)[-2:]
    assert len(rows) <= 2 * first * second + len(sizes)


def test_a_pair_that_no_row_may_have_is_named_and_the_others_meet() -> None:
    forbidden = frozenset({("f0", "1"), ("f1", "2")})
    table = Table([3, 3], [forbidden])
    rows, unmet = covered(table, table.goals())
    assert unmet == [forbidden]
    assert len(rows) == 8


def test_goals_past_the_most_rows_are_named() -> None:
    table = Table([3, 3])
    rows, unmet = covered(table, table.goals(), most=4)
    assert (len(rows), len(unmet)) == (4, 5)
    assert table.taken == rows


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=3, max_size=5))
def test_costly_rows_are_made_cheaper_while_all_pairs_meet_and_all_is_tried(sizes: list[int]) -> None:
    table, plain = Priced(sizes), Table(sizes)
    rows, unmet = covered(table, table.goals())
    before, _ = covered(plain, table.goals())
    assert unmet == []
    for goal in table.goals():
        assert any(goal <= row.items() for row in rows)
    assert len(rows) == len(before)
    assert sum(map(table.cost, rows)) <= sum(map(table.cost, before))
    assert {t for row in before for t in table.tries(row)} <= {t for row in rows for t in table.tries(row)}
