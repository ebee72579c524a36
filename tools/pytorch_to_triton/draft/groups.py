"""Steps that one kernel computes, and the order in which kernels and calls of PyTorch run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from pytorch_to_triton.draft.ir.values import Cluster
from pytorch_to_triton.draft.program import Call, Step
from pytorch_to_triton.draft.registry import PATTERNS
from pytorch_to_triton.draft.schedule.schedule import Mismatch


@dataclass(frozen=True)
class Group:
    """Steps that one pattern computes."""

    cluster: Cluster
    pattern: ModuleType
    steps: tuple[Step, ...]
    """Those that it stores."""
    operators: frozenset[str] = frozenset()
    """Of all steps that it computes."""


def group_of(cluster: Cluster, steps: tuple[Step, ...]) -> Group | Mismatch:
    """The steps that the cluster stores, with the first pattern that takes it."""
    reasons = []
    for pattern in PATTERNS:
        mismatch = pattern.match(cluster)
        if mismatch is None:
            return Group(cluster, pattern, steps)
        reasons.append(f"{pattern.__name__.rpartition('.')[2]}: {mismatch.reason}")
    return Mismatch("; ".join(reasons))


def in_order(groups: Sequence[Group], calls: Sequence[Call]) -> tuple[Group | Call, ...] | None:
    """Each after all that it reads; None where some wait for each other."""
    waiting: list[Group | Call] = [*groups, *calls]
    made: set[str] = set()
    everything = {n for g in waiting for n in made_by(g)}
    ordered: list[Group | Call] = []
    while waiting:
        ready = (g for g in waiting if not (read_by(g) & everything) - made - set(made_by(g)))
        if (first := next(ready, None)) is None:
            return None
        waiting.remove(first)
        ordered.append(first)
        made |= set(made_by(first))
    return tuple(ordered)


def made_by(item: Group | Call) -> tuple[str, ...]:
    """Names of what it stores or returns."""
    return item.names if isinstance(item, Call) else tuple(s.name for s in item.steps)


def read_by(item: Group | Call) -> set[str]:
    """Names of what it reads."""
    return set(item.reads) if isinstance(item, Call) else {v.buffer.name for v in item.cluster.loads()}
