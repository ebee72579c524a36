"""What `doctor` has checked."""

from typing import Literal

from pytorch_to_triton.schema.value import Value

CheckState = Literal["ok", "warning", "failed", "not here"]
"""not here: something that one can do without, such as a GPU."""


class CheckResult(Value):
    """One thing that was looked at."""

    name: str
    group: str
    """What it belongs to: GPU, torch and Triton, ..."""
    state: CheckState
    seen: str
    """One sentence."""
    fix: str = ""
    """What to do about it; empty where nothing is to be done."""


class Diagnosis(Value):
    """All checks of one machine."""

    summary: str
    next_step: str
    verdict: Literal["healthy", "unhealthy"]
    """unhealthy: at least one check failed."""
    python: str
    """The Python whose torch and Triton were looked at."""
    checks: tuple[CheckResult, ...]
    seconds: float
