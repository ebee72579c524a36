"""Whether a stage counts: it is validated, and on a device it is not slower than the one before."""

from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Literal

from pytorch_to_triton.benchmark.figures import is_not_slower
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.schema.conversion import Speed, StageReport
from pytorch_to_triton.schema.timing import TimingTable
from pytorch_to_triton.triton_api.check import Misuse, check
from pytorch_to_triton.triton_api.history import history

EAGER: Literal["PyTorch eager"] = "PyTorch eager"
COMPILE: Literal["torch.compile"] = "torch.compile"
"""What the target itself is called in a table of timings, as it is and compiled."""
ALIKE = 1.02
"""Stages whose times differ by less are alike: two runs of one stage do by half as much, and a stage with
launch configurations of its own starts in less time than one that looks them up."""


def unknown_names(text: str, triton: str) -> list[Misuse]:
    """The names and arguments in a file that this Triton does not have."""
    return [m for m in check(text, history().surface(triton), history()) if m.fault != "deprecated"]


def refuse_unknown_names(text: str, file: Path, triton: str) -> None:
    """Raises NotConvertible where a stage uses a name or an argument that this Triton does not have."""
    if wrong := unknown_names(text, triton):
        raise NotConvertible(
            f"{file}:{wrong[0].line}: {wrong[0].message}", wrong[0].suggestion or "Use another Triton."
        )


def mean_ms(label: str, tables: Sequence[TimingTable]) -> float | None:
    """The geometric mean of its medians over the sizes; None where it was not timed at all of them."""
    medians = [timing.median_ms for table in tables if (timing := table.of(label))]
    return geometric_mean(medians) if tables and len(medians) == len(tables) else None


def speed_of(label: str, before: str | None, tables: Sequence[TimingTable]) -> Speed:
    """How a stage compares with the one before, by the geometric mean over the sizes at which both were
    timed; without a measurement nothing is said."""
    timed = [(timing, table) for table in tables if (timing := table.of(label))]
    if timed and before is None:
        return "not slower"
    both = [(timing, previous) for timing, table in timed if before and (previous := table.of(before))]
    if not both:
        return "not measured"
    low_ms = geometric_mean(timing.low_ms for timing, _ in both)
    high_ms = geometric_mean(previous.high_ms for _, previous in both)
    return "not slower" if is_not_slower(low_ms, ALIKE * high_ms) else "slower"


def gated(stages: Sequence[StageReport], tables: Sequence[TimingTable]) -> tuple[StageReport, ...]:
    """The stages with their speeds; each is compared with the last stage whose gate opened."""
    judged: list[StageReport] = []
    before: str | None = None
    for stage in stages:
        label = label_of(stage.stage)
        speed = speed_of(label, before, tables)
        passed = stage.verdict.verdict == "passed" and speed != "slower"
        judged.append(stage.model_copy(update={"speed": speed, "passed": passed}))
        before = label if passed else before
    return tuple(judged)


def label_of(stage: int) -> str:
    """What a stage is called in a table of timings."""
    return f"stage {stage}"
