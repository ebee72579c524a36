"""Conditions on sizes under which an alternative may be taken, as Python."""

from collections.abc import Iterable, Sequence
from types import ModuleType

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Cluster
from pytorch_to_triton.draft.schedule.schedule import Alternative, Schedule


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


def always(alternatives: Sequence[Alternative], where: str = "") -> Alternative:
    """The best one that may be taken at all sizes, or at all where the condition holds."""
    return next(a for a in reversed(alternatives) if a.condition in ("", where))


def kernels_by_first(
    patterns: Iterable[ModuleType], cluster: Cluster, where: str = ""
) -> tuple[tuple[Cluster, Schedule], ...]:
    """The same of the first pattern that takes the cluster; empty where none does."""
    pattern = next((p for p in patterns if p.match(cluster) is None), None)
    return always(pattern.alternatives(cluster), where).kernels if pattern else ()
