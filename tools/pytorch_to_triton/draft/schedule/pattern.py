"""What a drafting pattern is, and what decides which steps share one of its kernels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from pytorch_to_triton.draft.ir.values import Cluster
from pytorch_to_triton.draft.schedule.schedule import Alternative, Mismatch


@dataclass(frozen=True)
class Traits:
    """What fusion asks of a pattern. The defaults suit a narrow one, whose kernels are not joined."""

    asked_last: int = 0
    """Patterns are asked in ascending order of this, then of their names: broad ones after narrow ones."""
    reduces: Literal["rows", "columns", "both"] | None = None
    """What it is the pattern for: reductions along neighbours in memory, across them, or both at once."""
    reads_once: bool = True
    """Whether its kernel loads each element once, so that more results of the same elements cost no reads."""
    repeats: bool | None = None
    """Whether its kernel reduces the same again for several outputs; None where the cluster's axes tell."""
    joins: Callable[[Cluster], bool] | None = None
    """Whether one kernel should compute what two would, as both read the same; None where none should."""


class Pattern(Protocol):
    """A file in patterns/."""

    @property
    def __name__(self) -> str: ...

    @property
    def EXAMPLES(self) -> tuple[str, ...]:
        """Functions as text that it must draft."""

    @property
    def TRAITS(self) -> Traits:
        """What fusion asks of it."""

    def match(self, cluster: Cluster) -> Mismatch | None:
        """Why it does not draft the cluster; None where it does."""

    def alternatives(self, cluster: Cluster) -> tuple[Alternative, ...]:
        """Ways to compute a cluster that it matches, from the plain one to the best."""
