"""Conditions on sizes under which an alternative may be taken, as Python."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Cluster
from pytorch_to_triton.draft.schedule.blocks import largest, lengths_of_axes, tile
from pytorch_to_triton.draft.schedule.pattern import Pattern
from pytorch_to_triton.draft.schedule.schedule import Alternative, Config, Schedule


def at_most(size: Size, limit: int) -> str | None:
    """The condition as Python: "" where it always holds, None where it never does."""
    if size.is_Integer:
        return "" if int(size) <= limit else None
    return f"{sizes.text(size)} <= {limit}"


def more_than(size: Size, limit: int) -> str | None:
    """The same for a lower limit."""
    if size.is_Integer:
        return "" if int(size) > limit else None
    return f"{sizes.text(size)} > {limit}"


SHORTEST = 4096
"""Rows of at most so many elements are short in any block."""


def half_empty(size: Size, limit: int) -> str | None:
    """The same for long rows, up to a limit, that leave a third and more of their block empty."""
    blocks = [2 * SHORTEST << n for n in range((limit // SHORTEST).bit_length() - 1)]
    if size.is_Integer:
        return "" if any(block // 2 < int(size) <= block * 2 // 3 for block in blocks) else None
    text = sizes.text(size)
    return " or ".join(f"{block // 2} < {text} <= {block * 2 // 3}" for block in blocks)


def together(*conditions: str | None) -> str | None:
    """All of them: "" where they always hold, None where one never does."""
    if None in conditions:
        return None
    return " and ".join(dict.fromkeys(c for c in conditions if c))


LARGEST_TILE = 65536
"""Elements of a program: a multiprocessor has as many registers. More take half a minute to compile."""
LONGEST_WHOLE = 16384
"""Elements of an axis that one program takes as a whole."""
BUSY_WARP = 512
"""Elements of a warp that has enough to do."""
MOST_WARPS = 16
"""Warps of a program that takes a whole row."""
LONG = 2**20
"""Longer than any block that has a limit."""


def with_tiles_that_fit(alternative: Alternative) -> Alternative:
    """The alternative only where no configuration is a larger tile; other sizes are left to the next one.

    A configuration for short rows holds as many of them where they are long.
    """
    condition = alternative.condition
    for cluster, schedule in alternative.kernels:
        for size, limit in limits(cluster, schedule).items():
            condition = limited(condition, size, limit)
    if condition == alternative.condition:
        return alternative
    return replace(alternative, condition=condition, limit=None)


def limits(cluster: Cluster, schedule: Schedule) -> dict[Size, int]:
    """Sizes that are at most so large where every configuration's tile fits.

    Products take what their pipeline has room for.
    """
    if len(schedule.configs) == 1 or "num_stages" in schedule.configs[0]:
        return {}
    axes = lengths_of_axes(cluster, schedule)
    blocks = {n: walk.block for n, walk in schedule.walks.items() if walk.block}
    covers = {n: schedule.sized[block] for n, block in blocks.items() if block in schedule.sized}
    known = math.prod(int(text) for text in covers.values() if text.isdigit())
    limit = LARGEST_TILE // (known * max(map(tile, schedule.configs)))
    long = {n: dict.fromkeys(sizes.names(axes[n]), LONG) for n in covers if n in axes}
    return {axes[n]: limit for n, point in long.items() if point and largest(covers[n], [point]) > limit}


def on_longer_axes(schedule: Schedule, config: Config) -> dict[str, str]:
    """What a measured configuration becomes where the axis that is taken whole is longer than it was at hand.

    As Python: a program keeps its elements, and a warp its own where a single row has more of them.
    """
    covers = [block for block, text in schedule.sized.items() if not text.isdigit()]
    others = [block for block in config if block.startswith("BLOCK") and block not in schedule.sized]
    if len(covers) != 1 or len(others) > 1 or schedule.covered.get(covers[0], LONGEST_WHOLE) >= LONGEST_WHOLE:
        return {}
    cover, warps = covers[0], config["num_warps"]
    beside = math.prod(int(text) for text in schedule.sized.values() if text.isdigit())
    elements = schedule.covered[cover] * math.prod(config[block] for block in others)
    longer = {
        block: f"min({config[block]}, max({elements} // {cover.lower()}, 1))"
        for block in others
        if config[block] > 1
    }
    if warps < MOST_WARPS:
        each = max(elements // warps, BUSY_WARP // beside, 1)
        longer["num_warps"] = f"min(max({cover.lower()} // {each}, {warps}), {MOST_WARPS})"
    return longer


def limited(condition: str, size: Size, limit: int) -> str:
    """The condition with an upper limit of a size that is unknown, if it has no lower one."""
    head = f"{sizes.text(size)} <= "
    parts = condition.split(" and ") if condition else []
    if any(int(p.removeprefix(head)) <= limit for p in parts if p.startswith(head)):
        return condition
    return " and ".join([*(p for p in parts if not p.startswith(head)), f"{head}{limit}"])


def any_of(conditions: Sequence[str]) -> str:
    """Where at least one holds; one that a wider one includes is left out."""
    every = {c: frozenset(c.split(" and ")) for c in conditions if " or " not in c}
    left = [
        c for c in dict.fromkeys(conditions) if not any(wide < every.get(c, set()) for wide in every.values())
    ]
    return " or ".join(f"({condition})" if len(left) > 1 else condition for condition in left)


def strictest(conditions: Iterable[str]) -> tuple[str, ...]:
    """All of them, but of several upper limits of one size the lowest alone."""
    lowest: dict[str, int] = {}
    others: dict[str, None] = {}
    for condition in conditions:
        size, _, limit = condition.rpartition(" <= ")
        if limit.isdigit() and " or " not in size and " and " not in size:
            lowest[size] = min(int(limit), lowest.get(size, int(limit)))
        else:
            others[condition] = None
    return (*(f"{size} <= {limit}" for size, limit in lowest.items()), *others)


def are_complements(one: str, other: str) -> bool:
    """Whether every size meets one of the two: an upper limit, and what lies beyond it."""
    size, _, limit = min(one, other).partition(" <= ")
    return max(one, other) == f"{size} > {limit}" and " or " not in size and " and " not in size


def always(alternatives: Sequence[Alternative], where: str = "") -> Alternative:
    """The best one that may be taken at all sizes, or at all where the condition holds."""
    return next(a for a in reversed(alternatives) if a.condition in ("", where))


def kernels_by_first(
    patterns: Iterable[Pattern], cluster: Cluster, where: str = ""
) -> tuple[tuple[Cluster, Schedule], ...]:
    """The same of the first pattern that takes the cluster; empty where none does."""
    pattern = next((p for p in patterns if p.match(cluster) is None), None)
    return always(pattern.alternatives(cluster), where).kernels if pattern else ()
