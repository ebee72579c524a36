"""Points: one size for each dimension."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod

Point = dict[str, int]
Sizes = Mapping[str, Sequence[int]]


def middle_size(sizes: Sequence[int]) -> int:
    """The lower middle of the sizes; where that is 0 or 1, the next one that exercises more than that."""
    ordered = sorted(sizes)
    middle = ordered[(len(ordered) - 1) // 2]
    return middle if middle > 1 else min((size for size in ordered if size > 1), default=ordered[-1])


def middle_point(dims: Sizes) -> Point:
    """The middle size of every dimension."""
    return {name: middle_size(sizes) for name, sizes in dims.items()}


def smallest_point(dims: Sizes) -> Point:
    """The smallest size of every dimension."""
    return {name: min(sizes) for name, sizes in dims.items()}


def largest_point(dims: Sizes) -> Point:
    """The largest size of every dimension."""
    return {name: max(sizes) for name, sizes in dims.items()}


def nearby(point: Mapping[str, int], choices: Sizes) -> Iterator[Point]:
    """`point`, then its neighbours among the choices: as few changed sizes as possible, the closest first."""
    others = {
        name: sorted(set(sizes) - {point[name]}, key=lambda size: abs(size - point[name]))
        for name, sizes in choices.items()
    }
    for count in range(len(others) + 1):
        for names in combinations(others, count):
            for sizes in product(*(others[name] for name in names)):
                yield {**point, **dict(zip(names, sizes, strict=True))}


def smallest_first(points: Iterable[Point]) -> tuple[Point, ...]:
    """Each point once, in their order of elements."""
    by_sizes = {tuple(point.items()): point for point in points}
    return tuple(sorted(by_sizes.values(), key=lambda point: (prod(point.values()), tuple(point.values()))))
