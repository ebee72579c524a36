"""Which steps share a kernel: as many as one pattern can hold, or, in stage 1, as few as make sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from pytorch_to_triton.convert.draft.axes import Misfit, Nest, nest
from pytorch_to_triton.convert.draft.kernel import Stage
from pytorch_to_triton.convert.draft.registry import PATTERNS
from pytorch_to_triton.graph.obstacles import Obstacle, refusal
from pytorch_to_triton.graph.program import Program, Step


@dataclass(frozen=True)
class Group:
    """Steps that one kernel computes."""

    steps: tuple[Step, ...]
    nest: Nest
    pattern: ModuleType


def partition(program: Program, stage: Stage) -> tuple[Group, ...]:
    """Groups in order of execution. Raises NotConvertible that names everything which stands in the way."""
    groups: list[list[Step]] = []
    home: dict[str, int] = {}
    for step in program.steps:
        earliest = max((home[v.source] for v in step.views if v.source in home), default=0)
        chosen = next(
            (
                i
                for i in range(len(groups) - 1, earliest - 1, -1)
                if _joins(program, groups[i], [step], stage)
            ),
            None,
        )
        if chosen is None:
            groups.append([])
            chosen = len(groups) - 1
        groups[chosen].append(step)
        home[step.name] = chosen
    found = [(steps, _matched(program, tuple(steps))) for steps in _fused(program, groups, stage)]
    obstacles = [_obstacle(steps[0], group) for steps, group in found if isinstance(group, Misfit)]
    if program.obstacles or obstacles:
        raise refusal(program.graph.function, [*program.obstacles, *obstacles])
    return tuple(group for _, group in found if isinstance(group, Group))


def _fused(program: Program, groups: list[list[Step]], stage: Stage) -> list[list[Step]]:
    """Groups joined wherever one pattern holds both; what is joined keeps the program's order."""
    for later in range(1, len(groups)):
        for earlier in range(later):
            if _may_move(groups, earlier, later) and _joins(program, groups[earlier], groups[later], stage):
                joined = [s for s in program.steps if s in groups[earlier] or s in groups[later]]
                rest = [g for i, g in enumerate(groups) if i not in (earlier, later)]
                return _fused(program, [*rest[: later - 1], joined, *rest[later - 1 :]], stage)
    return groups


def _may_move(groups: list[list[Step]], earlier: int, later: int) -> bool:
    """Whether the earlier group can wait until the later one: nothing between them reads its values."""
    made = {s.name for s in groups[earlier]}
    between = (s for group in groups[earlier + 1 : later] for s in group)
    return not any(v.source in made for s in between for v in s.views)


def _joins(program: Program, group: list[Step], others: list[Step], stage: Stage) -> bool:
    together = tuple(s for s in program.steps if s in group or s in others)
    if stage == 1 and not all(s.is_pointwise for s in together):
        return False
    return not isinstance(_matched(program, together), Misfit)


def _obstacle(step: Step, mismatch: Misfit) -> Obstacle:
    return Obstacle(step.op, step.line, f"no pattern drafts it here ({mismatch.reason})")


def _matched(program: Program, steps: tuple[Step, ...]) -> Group | Misfit:
    found = nest(program, steps, stored(program, steps))
    if isinstance(found, Misfit):
        return found
    reasons = []
    for pattern in PATTERNS:
        mismatch = pattern.match(found)
        if mismatch is None:
            return Group(steps, found, pattern)
        reasons.append(f"{pattern.__name__.rpartition('.')[2]}: {mismatch.reason}")
    return Misfit("; ".join(reasons))


def stored(program: Program, steps: Sequence[Step]) -> frozenset[str]:
    """The steps whose values are needed outside of the group."""
    inside = {s.name for s in steps}
    outside = [v.source for s in program.steps if s.name not in inside for v in s.views]
    return frozenset(inside & {*outside, *(r.view.source for r in program.results)})
