"""Cases of several conditions: a covering design over sizes, dtypes, layouts, values and configurations.

Mistakes take two conditions, such as a value and a tail. So each pair of levels that the declaration allows
meets in some case, and so do each kind of values, each dtype and a size that fills no block.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, reduce
from itertools import chain, combinations, cycle, islice, product
from math import isqrt

from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.validate.covering import Goal, Level, Levels, cover
from pytorch_to_triton.validate.factors import (
    ALL,
    CONTIGUOUS,
    EVERY_HOLDER,
    EXPANDED,
    FIRST,
    GROWING,
    LONG,
    RANDOM,
    SizeLevels,
    constant_changes,
    dtype_changes,
    fills_no_block,
    has_infinity,
    layout_changes,
    value_changes,
)
from pytorch_to_triton.validate.plan import NO_CHANGE, Change, PlanBuilder, parts_of

Row = tuple[Point, Change]
MOST = 64
"""Cases of the design: dozens of them are run in each validation."""
LONG_SHARE = 8
"""A case of more than this share of the elements that one may have takes long: it is made smaller."""
_POINTS_TRIED = 400
_VALUES, _HOLDER, _DTYPE, _CONFIGURATION = "values", "holder", "dtype", "configuration"
_SHOWN = 6
ALL_CONTIGUOUS: Level = ("layouts", "all contiguous")
ROWS_DIFFER: Level = ("rows", "differ")
"""No layout repeats a row: what is wrong at the end of many rows does not show where all are alike."""


def add_combined(plan: PlanBuilder, sizes: SizeLevels, configurations: int) -> None:
    """Adds the design's cases; what does not meet in any of them is left out, with the reason."""
    combination = Combination(plan, sizes, configurations)
    rows, unmet = cover(combination, combination.goals(), MOST)
    for point, change in rows:
        case = plan.case(plan.groups_of(point, parts_of(change.label)), point, change)
        plan.cases.setdefault(case.name, case)
    if unmet:
        named = (" with ".join(map(words_of, sorted(goal))) for goal in unmet)
        shown = "; ".join([*islice(named, _SHOWN), *["..."] * (len(unmet) > _SHOWN)])
        what = f"{len(unmet)} combinations of conditions"
        plan.leave_out(what, f"each is tried, but in no case of this run together: {shown}")


def words_of(level: Level) -> str:
    """One condition of a case in plain words: `N long`, `negative values`, `N that fills no block`."""
    factor, chosen = level
    kind, _, name = factor.partition(" ")
    match kind:
        case "dtype":
            return "the first dtypes" if chosen == FIRST else chosen
        case "values":
            return f"{chosen} values"
        case "tail":
            return f"{name} that fills no block"
        case "constant":
            return f"{name}={chosen}"
        case "size" | "layout" | "way":
            return f"{name} {chosen}"
    return f"{factor} {chosen}"


def every_pair(some: Iterable[Level], others: Iterable[Level]) -> Iterator[Goal]:
    """Each of some levels with each of the others, where they are of different factors."""
    second = list(others)
    return (frozenset((a, b)) for a in some for b in second if a[0] != b[0])


class Combination:
    """The factors of a declaration, and how a row of their levels becomes a case."""

    def __init__(self, plan: PlanBuilder, sizes: SizeLevels, configurations: int) -> None:
        self.plan = plan
        self.sizes = sizes
        self.traits = {
            (name, size): _traits(name, size, plan.switches_of(name))
            for name, levels in sizes.items()
            for size in (size for sizes in levels.values() for size in sizes)
        }
        """Of each size."""
        self.values = value_changes(plan.declaration)
        self.dtypes: dict[str, Change] = {FIRST: NO_CHANGE, **dtype_changes(plan.declaration)}
        self.layouts = layout_changes(plan.declaration)
        self.constants = constant_changes(plan.declaration)
        self.used: Counter[object] = Counter()
        factors = {
            **{f"size {name}": list(levels) for name, levels in sizes.items()},
            _VALUES: list(dict.fromkeys(level for level, _ in self.values)),
            _HOLDER: list(dict.fromkeys(holder for _, holder in self.values)),
            _DTYPE: list(self.dtypes),
            **{f"constant {name}": list(levels) for name, levels in self.constants.items()},
            **{f"layout {name}": list(levels) for name, levels in self.layouts.items()},
            _CONFIGURATION: [str(number) for number in range(configurations)],
        }
        self.factors = {name: levels for name, levels in factors.items() if levels}
        self.excluded, self.implied = cache(self._excluded), cache(self._implied)

    def goals(self) -> Iterator[Goal]:
        """What is to meet, the most telling first."""
        values = [level for level in self._levels(_VALUES) if level[1] != RANDOM]
        dtypes = self._levels(_DTYPE)
        sizes, layouts = self._levels_of_kind("size "), self._levels_of_kind("layout ")
        configurations = self._levels(_CONFIGURATION)
        constants = self._levels_of_kind("constant ")
        traits = sorted(set(chain(*self.traits.values())))
        tails, ways = ([t for t in traits if t[0].startswith(kind)] for kind in ("tail ", "way "))
        through = [level for level in values if level[1] in EVERY_HOLDER]
        # What is wrong everywhere along a long row hides behind special values and short dtypes.
        long = [level for level in sizes if level[1] == LONG]
        yield from (frozenset(((_VALUES, RANDOM), (_DTYPE, FIRST), level)) for level in long)
        # Each value of a constant may take a kernel of its own.
        plain = ((_VALUES, RANDOM), (_DTYPE, FIRST))
        yield from (frozenset((*plain, *pair)) for pair in product(constants, [*tails, *sizes]))
        yield from every_pair(constants, [*dtypes, *constants, *values])
        yield from (frozenset(triple) for triple in product(values, dtypes, tails))
        yield from every_pair(values, sizes)
        # Each way has code of its own, be it taken where several sizes are past a switch.
        for switch in sorted({past for _, past in ways}):
            taken = {_dim_of(way): way for way in ways if way[1] == switch}
            sizes_met = {_dim_of(tail): tail for tail in tails} | taken
            for level in (*through, (_VALUES, RANDOM)):
                yield frozenset((level, (_DTYPE, FIRST), *sizes_met.values()))
        yield from every_pair(through, ways)
        growing = [level for level in values if level[1] in GROWING]
        # Sums that are kept in a short dtype lose digits where they are long and of one sign; a maximum that
        # misses the last row hides among what is rounded alike.
        signs_and_dtypes = [*product(growing, dtypes[:1]), *zip(cycle(growing), dtypes[1:])]
        yield from (frozenset((*pair, size, ROWS_DIFFER)) for pair in signs_and_dtypes for size in long)
        yield from every_pair(configurations, [*sizes, *dtypes])
        yield from (
            frozenset(((_VALUES, level), (_HOLDER, holder)))
            for level, holder in self.values
            if level in EVERY_HOLDER
        )
        yield from every_pair(values, [ALL_CONTIGUOUS])
        yield from every_pair(sizes, sizes)
        yield from every_pair(layouts, [*sizes, *dtypes])
        yield from every_pair(dtypes, sizes)
        yield from every_pair(values, layouts)
        yield from every_pair(layouts, layouts)
        yield from every_pair(constants, [*configurations, *layouts])
        yield from every_pair(configurations, [*values, *layouts])

    def _levels(self, factor: str) -> list[Level]:
        return [(factor, level) for level in self.factors.get(factor, ())]

    def _levels_of_kind(self, prefix: str) -> list[Level]:
        return [level for name in self.factors if name.startswith(prefix) for level in self._levels(name)]

    def _excluded(self, goal: Goal) -> frozenset[Level]:
        """Sizes without the traits of the goal, layouts where all are to be contiguous, and rows that
        are alike where values are to meet long ones.
        """
        layouts = self._levels_of_kind("layout ")
        other = [
            (f"size {name}", level)
            for name, levels in self.sizes.items()
            if (wanted := self._wanted(goal, name))
            for level, sizes in levels.items()
            if not any(wanted <= self.traits[name, size] for size in sizes)
        ]
        apart = [level for level in layouts if ALL_CONTIGUOUS in goal and level[1] != CONTIGUOUS]
        in_long = {_VALUES, LONG} <= {part for level in goal for part in level}
        alike = [level for level in layouts if in_long and level[1] == EXPANDED]
        return frozenset((*other, *apart, *alike))

    def _wanted(self, goal: Goal, name: str) -> frozenset[Level]:
        """The traits of this dim's sizes that the goal asks for."""
        return frozenset(each for each in goal if each[0] in (f"tail {name}", f"way {name}"))

    def _implied(self, level: Level) -> frozenset[Level]:
        """The traits of a level's sizes."""
        name = level[0].removeprefix("size ")
        sizes = self.sizes.get(name, {}).get(level[1], ()) if level[0] != name else ()
        return frozenset(chain.from_iterable(self.traits[name, size] for size in sizes))

    def place(self, levels: Levels, goal: Goal) -> tuple[Levels, Row] | None:
        """The first allowed case that meets the goal, near the wanted levels, and the levels that it has."""
        kept = {factor for factor, _ in goal}
        holder = self._holder(levels, kept)
        for dtype in self._near(_DTYPE, levels, kept):
            change = self._change({**levels, _DTYPE: dtype}, holder)
            if has_infinity(self.plan.declaration, change):
                break
        else:
            return None
        point = self._point(levels, goal, change)
        if point is None:
            return None
        return self._levels_met(levels, holder, dtype, point), (point, change)

    def take(self, levels: Levels, row: Row) -> None:
        """Count what the row uses, so that alternatives take turns."""
        point, change = row
        self.used.update(
            [*parts_of(change.label), *point.items(), (levels.get(_VALUES), levels.get(_HOLDER))]
        )

    def tries(self, row: Row) -> Iterable[tuple[str, int]]:
        """What some row is to keep beside the goals: each size."""
        point, _ = row
        return point.items()

    def cost(self, row: Row) -> int:
        """In elements: the interpreter takes programs one by one."""
        point, _ = row
        return self.plan.declaration.elements_at(point)

    def cheaper(self, levels: Levels, row: Row) -> Iterator[tuple[Levels, Row]]:
        """Of a row that takes long, others with the next smaller size of one dim, the largest dim first."""
        point, change = row
        if self.cost(row) * LONG_SHARE <= self.plan.limits.elements:
            return
        for name in sorted(point, key=lambda dim: -point[dim]):
            known = {size for sizes in self.sizes[name].values() for size in sizes}
            for size in sorted((size for size in known if size < point[name]), reverse=True):
                near = {**point, name: size}
                if self.plan.problem(near, change) is None:
                    met = self._levels_met(levels, levels.get(_HOLDER, ALL), levels[_DTYPE], near)
                    yield met, (near, change)

    def _holder(self, levels: Levels, kept: Iterable[str]) -> str:
        """Who holds the values: as wanted where that may be, else whoever held them least."""
        holders = [holder for level, holder in self.values if level == levels.get(_VALUES)]
        if levels.get(_HOLDER) in holders and (_HOLDER in kept or len(holders) == 1):
            return levels[_HOLDER]
        return min(holders, key=lambda h: self.used[levels[_VALUES], h], default=ALL)

    def _near(self, factor: str, levels: Levels, kept: Iterable[str]) -> list[str]:
        """The wanted level of a factor, then the others where it may be exchanged."""
        others = [] if factor in kept else self.factors[factor]
        return list(dict.fromkeys((levels[factor], *others)))

    def _change(self, levels: Levels, holder: str) -> Change:
        """The change of a row, of each level the alternative that was used least."""
        configuration = int(levels[_CONFIGURATION])
        alternatives = [
            (self.dtypes[levels[_DTYPE]],),
            *((each[levels[f"constant {name}"]],) for name, each in self.constants.items()),
            *(layouts[levels[f"layout {name}"]] for name, layouts in self.layouts.items()),
            self.values.get((levels.get(_VALUES, ""), holder), (NO_CHANGE,)),
            (configuration_change(configuration),),
        ]
        return reduce(Change.joined, (min(each, key=lambda c: self.used[c.label]) for each in alternatives))

    def _point(self, levels: Levels, goal: Goal, change: Change) -> Point | None:
        kept, excluded = {factor for factor, _ in goal}, self.excluded(goal)
        choices: list[list[int]] = []
        for name in self.sizes:
            factor, wanted = f"size {name}", self._wanted(goal, name)
            allowed = [n for n in self._near(factor, levels, kept) if (factor, n) not in excluded]
            fitting = (size for size in self._sizes_of(name, allowed) if wanted <= self.traits[name, size])
            choices.append(list(fitting))
        return self.plan.first_that_runs(self.sizes, islice(_points(choices), _POINTS_TRIED), change)

    def _sizes_of(self, name: str, levels: Sequence[str]) -> Iterator[int]:
        """A level's sizes take turns, large ones less often: they take longer."""
        for level in levels:
            weight = int if level == LONG else isqrt
            yield from sorted(self.sizes[name][level], key=lambda size: self.used[name, size] * weight(size))

    def _levels_met(self, levels: Levels, holder: str, dtype: str, point: Point) -> Levels:
        of_sizes = {
            f"size {name}": next(level for level, sizes in self.sizes[name].items() if size in sizes)
            for name, size in point.items()
        }
        traits = dict(chain.from_iterable(self.traits[pair] for pair in point.items()))
        layouts = {name: levels[name] for name in self.factors if name.startswith("layout ")}
        constants = {name: levels[name] for name in self.factors if name.startswith("constant ")}
        contiguous = dict([ALL_CONTIGUOUS]) if set(layouts.values()) <= {CONTIGUOUS} else {}
        differ = dict([ROWS_DIFFER]) if EXPANDED not in layouts.values() else {}
        values = {_VALUES: levels[_VALUES], _HOLDER: holder} if _VALUES in levels else {}
        others = {_DTYPE: dtype, _CONFIGURATION: levels[_CONFIGURATION]}
        return {**of_sizes, **traits, **constants, **layouts, **contiguous, **differ, **values, **others}


def _traits(name: str, size: int, switches: Sequence[int]) -> frozenset[Level]:
    """That a size leaves a tail, and the last size that it is past at which the code takes another way."""
    passed = max((switch for switch in switches if switch < size), default=0)
    tail, way = (f"tail {name}", "yes"), (f"way {name}", f"past {passed}")
    return frozenset([tail] * fills_no_block(size) + [way] * (passed > 0))


def _dim_of(trait: Level) -> str:
    return trait[0].partition(" ")[2]


def _points(choices: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """The first choice for each dim, then points that depart from it in as few dims as possible."""
    for count in range(len(choices) + 1):
        for places in combinations(range(len(choices)), count):
            parts = (sizes[1:] if place in places else sizes[:1] for place, sizes in enumerate(choices))
            yield from product(*parts)


def configuration_change(number: int) -> Change:
    return Change(f"configuration {number}", configuration=number) if number else NO_CHANGE
