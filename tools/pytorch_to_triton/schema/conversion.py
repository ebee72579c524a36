"""What a conversion did, stage by stage."""

from pathlib import Path
from typing import Literal

from pytorch_to_triton.schema.timing import TimingTable, Traffic
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import Verdict

Outcome = Literal["converted", "stopped"]
Speed = Literal["not slower", "slower", "not measured"]


class StageReport(Value):
    """One stage: what was drafted and whether its gate opened."""

    stage: int
    name: str
    """`correct`, `optimised` or `tuned`."""
    file: Path
    kernels: tuple[str, ...]
    """In order of launch."""
    passes: tuple[int, ...]
    """How often each kernel reads its row."""
    calls: tuple[str, ...] = ()
    """Operators that stay calls of PyTorch."""
    passed: bool
    """Validated, and not slower than the stage before where that could be measured."""
    verdict: Verdict
    speed: Speed
    """Against the stage before, beyond its confidence interval; stage 1 against nothing."""


class Speedup(Value):
    """The last stage that passed beside the faster of eager PyTorch and torch.compile."""

    baseline: Literal["PyTorch eager", "torch.compile"]
    """Which of the two is faster."""
    ratio: float
    """Its median time over the kernel's."""
    slower: bool
    """Whether the kernel takes longer, beyond both confidence intervals."""


class AtSizes(Value):
    """What is known of the kernel at sizes that it is timed at."""

    dims: dict[str, int]
    timing: TimingTable | None = None
    """PyTorch eager, torch.compile and all stages side by side; None without a GPU."""
    speedup: Speedup | None = None
    """None where the kernel or both baselines were not timed."""
    traffic: Traffic | None = None
    """What the kernel launches and moves, estimated; None: not counted."""


class Conversion(Value):
    """A PyTorch function turned into a Triton kernel file."""

    summary: str
    """What a person would say."""
    next_step: str
    verdict: Outcome
    target: str
    kernel: Path | None
    """The last stage whose gate opened, as a file of its own."""
    folder: Path
    """Where the stages, the kernel and the report lie."""
    stages: tuple[StageReport, ...]
    at: tuple[AtSizes, ...]
    """The sizes that it is timed at, the smallest first."""
    device: str
    notes: tuple[str, ...]
    """What the trace fixed or narrowed."""
    provenance: str
    """How the figures came about."""
    replay: str = ""
    """The command that validates the kernel, else the last stage, again on the same inputs."""
