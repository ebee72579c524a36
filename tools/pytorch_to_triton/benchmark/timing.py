"""Timing several targets side by side on the device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from pytorch_to_triton.benchmark.statistics import median_interval
from pytorch_to_triton.errors import TargetBroken
from pytorch_to_triton.gpu.device_lock import device_lock
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.schema.case import Case, tensors_in
from pytorch_to_triton.schema.job import Job, Mode
from pytorch_to_triton.schema.target import Role, Target
from pytorch_to_triton.schema.timing import Timing, TimingTable

ROUNDS = 60


@dataclass(frozen=True)
class Subject:
    """Something to time."""

    label: str
    target: Target
    role: Role


@dataclass(frozen=True)
class Trial:
    """What to time on which inputs. The first subject is the one whose state, if any, all are given."""

    subjects: Sequence[Subject]
    case: Case
    bytes_moved: int
    seed: int
    seconds: float


async def time_side_by_side(door: Door, trial: Trial, mode: Mode, watch: Watch | None = None) -> TimingTable:
    """Median device times under the device lock. Raises TargetBroken if nothing could be timed."""
    arguments: Mapping[str, JsonValue] = {
        "subjects": [
            {"label": s.label, "target": s.target.model_dump(mode="json"), "role": s.role}
            for s in trial.subjects
        ],
        "case": trial.case.model_dump(mode="json"),
        "seed": trial.seed,
        "rounds": ROUNDS,
    }
    async with device_lock("cuda-0", watch):
        job = Job(kind="timing", arguments=dict(arguments))
        outcome = await door.ask(job, mode, seconds=trial.seconds, watch=watch)
    if outcome.answer is None:
        what = outcome.failure.message if outcome.failure else outcome.detail
        raise TargetBroken(
            f"Timing {outcome.status.replace('_', ' ')} during {outcome.during or 'start'}: {what}.",
            f"The log is in {outcome.folder}.",
        )
    return table(trial, outcome.answer)


def table(trial: Trial, answer: Mapping[str, JsonValue]) -> TimingTable:
    """The worker's samples as medians with confidence intervals."""
    samples = answer["samples_ms"]
    assert isinstance(samples, dict)
    timings = []
    for label, values in samples.items():
        assert isinstance(values, list)
        median, low, high = median_interval([float(str(v)) for v in values])
        timings.append(
            Timing(
                label=label,
                median_ms=median,
                low_ms=low,
                high_ms=high,
                calls=len(values),
                gbytes_per_s=trial.bytes_moved / median / 1e6 if trial.bytes_moved else None,
            )
        )
    return TimingTable.model_validate(
        {
            "device": answer["device"],
            "dims": trial.case.dims,
            "dtypes": {t.name: t.dtype for t in tensors_in(trial.case.arguments)},
            "bytes_moved": trial.bytes_moved,
            "timings": timings,
            "failed": answer["failed"],
        }
    )
