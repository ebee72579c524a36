"""Whether a stage counts: it is validated, and on a device it is not slower than the one before."""

from collections.abc import Sequence
from pathlib import Path
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


def speed_of(label: str, before: str | None, table: TimingTable | None) -> Speed:
    """How a stage compares with the one before; without a measurement nothing is said."""
    timing = table.of(label) if table else None
    previous = table.of(before) if table and before else None
    if timing is None or (before is not None and previous is None):
        return "not measured"
    if previous is None:
        return "not slower"
    return "not slower" if is_not_slower(timing.low_ms, ALIKE * previous.high_ms) else "slower"


def gated(stages: Sequence[StageReport], table: TimingTable | None) -> tuple[StageReport, ...]:
    """The stages with their speeds; each is compared with the last stage whose gate opened."""
    judged: list[StageReport] = []
    before: str | None = None
    for stage in stages:
        label = label_of(stage.stage)
        speed = speed_of(label, before, table)
        passed = stage.verdict.verdict == "passed" and speed != "slower"
        judged.append(stage.model_copy(update={"speed": speed, "passed": passed}))
        before = label if passed else before
    return tuple(judged)


def label_of(stage: int) -> str:
    """What a stage is called in a table of timings."""
    return f"stage {stage}"
