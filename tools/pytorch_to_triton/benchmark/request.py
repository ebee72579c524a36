"""What is asked of a benchmark."""

from pathlib import Path
from typing import Annotated

from pytorch_to_triton.command_line import NOT_REPEATED, Option
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Options
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.benchmark import Baseline, Passes
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value

BASELINES: tuple[Baseline, ...] = ("eager", "compile", "max-autotune")


class BenchmarkRequest(Value):
    """What to time, and how."""

    candidate: Target
    reference: Target | None = None
    """None: the reference in the candidate's own file."""
    against: tuple[Target, ...] = ()
    """Further implementations of the same function."""
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the file; dims given here are the sizes to time."""
    points: Annotated[tuple[Point, ...], Option("at")] = ()
    """Sizes to time together, such as those of a model's layers."""
    baselines: Annotated[tuple[Baseline, ...], Option("baseline")] = BASELINES
    """Which ways of running the reference are timed."""
    passes: Passes = "forward"
    tf32: bool = False
    """Whether float32 products may run in TF32, for everybody."""
    tune_seconds: Annotated[float | None, Option("tune")] = None
    """How long to search for better configurations of autotuned kernels at each size; None: not at all."""
    freeze: Path | None = None
    """Where to write the kernel file with its configurations as a table; None: nowhere."""
    seconds: Annotated[float, Option("timeout")] = 120.0
    """How long a first call may take, compilation and autotuning included."""
    seed: int | None = None
    """None: a fresh one, which the report names."""
    into: Annotated[Path | None, NOT_REPEATED] = None
    """The folder for report and pictures; None: `benchmarks/NAME` below the working directory."""
    force: Annotated[bool, NOT_REPEATED] = False
    """Whether files that no benchmark of this kernel wrote may be replaced."""
