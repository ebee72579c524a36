"""What a benchmark found, size by size."""

from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from pytorch_to_triton.schema.timing import Ceilings, RedFlag, TimingTable
from pytorch_to_triton.schema.value import Value

Passes = Literal["forward", "backward", "both"]
"""What is timed: the call without gradients, its backward pass alone, or both together."""

Baseline = Literal["eager", "compile", "max-autotune"]
"""Ways to run the reference: as it is, through torch.compile, and through its longest search."""

KERNEL = "kernel"
FROZEN = "kernel, frozen"
"""The kernel with the configurations that a search has found."""
EAGER = "eager"
COMPILE = "compile"
MAX_AUTOTUNE = "compile max-autotune"
"""Labels of the callables that every benchmark knows; others are named after their targets."""


class Conditions(Value):
    """The state of the device while it was timed."""

    driver: str | None
    provenance: str
    """`NVML`, or why nothing could be read."""
    sm_clock_mhz: tuple[int, int] | None = None
    """Lowest and highest seen while timing."""
    max_sm_clock_mhz: int | None = None
    temperature_celsius: int | None = None
    """Highest seen."""
    throttled_by: tuple[str, ...] = ()
    """Reasons that held the clocks down while timing, other than being idle."""
    other_processes: tuple[str, ...] = ()
    """What else computed on the device, e.g. `process 4711 (512 MiB)`."""


class TunedConfig(Value):
    """The configuration that an autotuned kernel chose at one key."""

    kernel: str
    file: str = ""
    """Where the kernel is defined; empty: not known."""
    line: int | None = None
    key: dict[str, JsonValue]
    """The arguments that the choice depends on, by name: sizes, and dtypes as `x_ptr dtype`."""
    config: dict[str, JsonValue]
    """Its meta-parameters, `num_warps`, `num_stages` and others that differ from Triton's defaults."""
    seconds: float | None = None
    """What the tuning took."""


class Benchmark(Value):
    """A kernel's times against its baselines and the device's limit."""

    summary: str
    """The result in a sentence or two."""
    next_step: str
    verdict: Literal["faster", "slower", "void", "estimated"]
    """faster: not slower than any baseline, by the confidence intervals, at every size. slower: slower than
    one at some size. void: the kernel's figures cannot be trusted, as the flags show. estimated: nothing was
    run."""
    kernel: str
    device: str
    """GPU, driver, torch and Triton versions, date."""
    passes: Passes
    precision: str
    """The setting for all callables: `float32 products in float32 (TF32 off)`."""
    provenance: str
    """`measured` or `estimated`, and how."""
    tables: tuple[TimingTable, ...]
    """One for each size, in growing order of bytes."""
    flags: tuple[RedFlag, ...]
    """About the whole run; those of a size are in its table."""
    ceilings: Ceilings | None
    conditions: Conditions | None
    tuned: tuple[TunedConfig, ...] = ()
    pictures: tuple[Path, ...] = ()
    """PNG files: speed-up against size, roofline."""
    notes: tuple[str, ...] = ()
    """Results of the search for configurations, size by size."""
    frozen: Path | None = None
    """The kernel file with its tuned configurations as a table, where one was asked for."""
    folder: Path | None = None
    """Where report.md, report.json and the pictures lie."""
    seed: int | None = None
    replay: str = ""
    """The command that measures the same again."""
