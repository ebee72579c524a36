"""What follows from the attempts of a session: nothing else is kept of where it stands."""

from collections.abc import Sequence

from pytorch_to_triton.schema.session import Attempt, Condition, Stage

STAGES: tuple[Stage, ...] = (1, 2, 3)
LAST: Stage = 3


def stage_of(attempts: Sequence[Attempt]) -> Stage:
    """The stage whose gate is next: behind the last one that opened; the last one stays."""
    best = best_of(attempts)
    if best is None:
        return 1
    return LAST if best.stage == LAST else (2, 3)[best.stage - 1]


def best_of(attempts: Sequence[Attempt]) -> Attempt | None:
    """The last attempt whose gate opened, or that was restored."""
    return next((attempt for attempt in reversed(attempts) if attempt.opened), None)


def before(attempts: Sequence[Attempt], stage: Stage) -> Attempt | None:
    """The attempt that `stage` is compared with: the last opened one of an earlier stage."""
    return next((attempt for attempt in reversed(attempts) if attempt.opened and attempt.stage < stage), None)


def opens(conditions: Sequence[Condition], accepted: str, can_be_accepted: str) -> bool:
    """Whether no condition is unmet, but for the one that the caller may accept with a reason."""
    unmet = [condition.name for condition in conditions if condition.met == "not met"]
    return not [name for name in unmet if not (accepted and name == can_be_accepted)]
