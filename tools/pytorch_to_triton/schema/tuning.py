"""Which configurations of a kernel were tried, which are kept, and where they were measured."""

from datetime import date
from typing import Literal

from pydantic import JsonValue

from pytorch_to_triton.schema.benchmark import TunedConfig
from pytorch_to_triton.schema.value import Value


class Origin(Value):
    """Where and when configurations were measured."""

    device: str
    """The GPU's name."""
    triton: str
    """Triton's version."""
    day: date

    def __str__(self) -> str:
        return f"{self.device}, Triton {self.triton}, {self.day.isoformat()}"


class KeptConfig(Value):
    """A configuration that was measured, and where."""

    origin: Origin
    chosen: TunedConfig

    @property
    def identity(self) -> tuple[str, ...]:
        """What only the newest is kept of: GPU, Triton, kernel and key."""
        key = sorted(self.chosen.key.items())
        return (self.origin.device, self.origin.triton, self.chosen.kernel, repr(key))


class KeptConfigs(Value):
    """All that is kept of one kernel file."""

    file: str
    """Where the kernel file lay when this was written."""
    configs: tuple[KeptConfig, ...] = ()


class Tried(Value):
    """One configuration of a kernel at one key, and its result."""

    kernel: str
    key: dict[str, JsonValue]
    config: dict[str, JsonValue]
    median_ms: float | None = None
    """Of the whole call, on the device, the L2 cache cold; None: it was dropped before it was timed."""
    calls: int = 0
    """Calls that the median is of."""
    dropped: str = ""
    """Why it was not timed."""


class Tuning(Value):
    """What a tuning within a time budget found."""

    summary: str
    """The result in a sentence or two."""
    next_step: str
    verdict: Literal["tuned", "stopped", "nothing_to_tune"]
    """tuned: the search came to its end or used up its time. stopped: an error or a crash ended it; what it
    had found is here. nothing_to_tune: the call launches no autotuned kernel."""
    kernel: str
    device: str
    triton: str
    dims: dict[str, int]
    """The sizes that were tuned for."""
    tuned: tuple[TunedConfig, ...]
    """The fastest configuration of each autotuned kernel by key; compared with the first by its results."""
    tried: tuple[Tried, ...]
    """All configurations tried, the chosen ones included, in the order of the search."""
