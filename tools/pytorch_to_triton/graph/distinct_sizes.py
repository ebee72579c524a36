"""Sizes to trace at: all of them distinct, so that a size in the graph shows which dim it is."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from pytorch_to_triton.inputs.expression import holds, names_in

PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
SIZES_TRIED = 10_000
"""Of each family of sizes."""

Sizes = tuple[int, ...]


def distinct_sizes(
    names: Sequence[str], requirements: Sequence[str], excluded: Collection[int]
) -> dict[str, int] | None:
    """A size for each dim, all different and none `excluded`, that meets every requirement; else None."""
    by_last = _by_last_name(names, requirements)
    for family in _families(len(names), requirements):
        steps = iter(range(SIZES_TRIED))
        search = _assignments(names, family, by_last, {}, excluded, steps)
        solution = next(search, None)
        if solution is not None:
            return solution
    return None


def _assignments(
    names: Sequence[str],
    family: Sequence[Sizes],
    by_last: Mapping[str, Sequence[str]],
    chosen: Mapping[str, int],
    excluded: Collection[int],
    steps: Iterator[int],
) -> Iterator[dict[str, int]]:
    """All ways to go on from the `chosen` sizes, while there are steps; a requirement is looked at once its
    last dim has a size."""
    if len(chosen) == len(names):
        yield dict(chosen)
        return
    name = names[len(chosen)]
    for size in family[len(chosen)]:
        if next(steps, None) is None:
            return
        if size in excluded or size in chosen.values():
            continue
        dims = {**chosen, name: size}
        if all(holds(text, dims) for text in by_last[name]):
            yield from _assignments(names, family, by_last, dims, excluded, steps)


def _by_last_name(names: Sequence[str], requirements: Sequence[str]) -> dict[str, list[str]]:
    """The requirements by the last dim that they name."""
    by_last: dict[str, list[str]] = {name: [] for name in names}
    for text in requirements:
        named = names_in(text)
        by_last[max(named, key=names.index) if named else names[-1]].append(text)
    return by_last


def _families(count: int, requirements: Sequence[str]) -> Iterator[list[Sizes]]:
    """Candidates for each dim, the most telling ones first: primes, multiples of one factor, of several."""
    numbers = sorted({int(n) for text in requirements for n in re.findall(r"\d+", text)} - {0, 1})
    for factor in dict.fromkeys((1, 2, 4, 8, 16, 32, 64, 128, *numbers, math.lcm(*numbers))):
        yield [tuple(p * factor for p in PRIMES[i:] + PRIMES[:i])[:6] for i in range(count)]
    yield [tuple(p * f for f in (16, 32, 64, 1) for p in PRIMES[:5])] * count
    multiples = (1, 2, 3, 4, *numbers)
    yield [tuple(dict.fromkeys(p * f for p in (11, 5, 3) for f in multiples))] * count
    # Small sizes are distinguished less reliably, so they come last.
    yield [tuple(range(3, 11))] * count
