"""What a check may say."""

from dataclasses import dataclass
from typing import TypeVar

from pytorch_to_triton.schema.diagnosis import CheckState

T = TypeVar("T")


@dataclass(frozen=True)
class CheckOutcome:
    """A state, what was seen, and what to do about it; a sentence each."""

    state: CheckState
    seen: str
    fix: str = ""


@dataclass(frozen=True)
class NotSeen:
    """A fact that could not be found out."""

    why: str
    fix: str = "Run doctor again; if that does not help, see what the machine is busy with."


def fine(seen: str) -> CheckOutcome:
    """As it should be."""
    return CheckOutcome("ok", seen)


def doubtful(seen: str, fix: str) -> CheckOutcome:
    """It works, but not as it could."""
    return CheckOutcome("warning", seen, fix)


def broken(seen: str, fix: str) -> CheckOutcome:
    """Something that is needed does not work."""
    return CheckOutcome("failed", seen, fix)


def absent(seen: str, fix: str = "") -> CheckOutcome:
    """Something that one can do without is not here."""
    return CheckOutcome("not here", seen, fix)


def gib(count: float) -> str:
    """Bytes as a person reads them."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
