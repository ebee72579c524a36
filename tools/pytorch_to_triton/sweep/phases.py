"""What is done with one item: drafted, validated, audited, tuned, timed. Each gives a record."""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread

from pytorch_to_triton.audit.audit import audit
from pytorch_to_triton.audit.request import AuditRequest
from pytorch_to_triton.benchmark.benchmark import benchmark
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.convert.request import ConversionRequest
from pytorch_to_triton.draft.file.launches import Stage
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.places import write_atomically
from pytorch_to_triton.schema.benchmark import COMPILE, EAGER, FROZEN, KERNEL, Benchmark
from pytorch_to_triton.schema.finding import SEVERITIES, AuditReport
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.timing import TimingTable
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.sweep.drafting import drafted, origin_of
from pytorch_to_triton.sweep.engine import LONGEST
from pytorch_to_triton.sweep.items import Candidate, SweepItem, candidate_of, digest_of
from pytorch_to_triton.sweep.journal import Record
from pytorch_to_triton.validate.conclusion import WRONG
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.validate import validate

PhaseName = Literal["draft", "validate", "audit", "tune", "time"]
ON_DEVICE_ALONE: tuple[PhaseName, ...] = ("tune", "time")
"""They measure, which takes a GPU on which nothing else runs."""
CALLS_THE_REFERENCE = "calls_the_reference"
"""What a candidate does to whom the reference was withheld; beside the kinds of violations."""
UNFINISHED = ({"timed_out"}, {"crashed"})
SEED = 20
AUDITED_FOR = ("sm_90",)
"""The GPU that an audit compiles for, which takes seconds for each."""


@dataclass(frozen=True)
class Treatment:
    """How all items are treated; it goes to other machines as it is."""

    out: Path
    """The results folder; paths in records are relative to it."""
    seconds: float
    """How long one phase of one item may take."""
    stage: Stage = 3
    """Of drafts."""
    points: tuple[Point, ...] = ()
    """Sizes to time at."""
    tune_seconds: float = 60.0
    """How long `tune` searches for configurations at each size."""


@dataclass(frozen=True)
class Slot:
    """Where a phase runs."""

    worker: WorkerClient
    runtime: Runtime


Known = Mapping[str, Record]
"""An item's records by phase."""


async def do(phase: PhaseName, slot: Slot, treatment: Treatment, item: SweepItem, known: Known) -> Record:
    """What the phase makes of the item. Raises a Refusal where it cannot be done."""
    if phase == "draft":
        return await draft(slot, treatment, item)
    candidate = candidate_of(item, known, treatment.out)
    assert candidate is not None
    return await _OF_CANDIDATES[phase](slot, treatment, item, candidate)


async def draft(slot: Slot, treatment: Treatment, item: SweepItem) -> Record:
    """`drafted` with its file. Raises NotConvertible, and BadInput for what cannot be loaded or called."""
    assert item.problem is not None
    request = ConversionRequest(
        target=item.problem,
        options=item.options,
        points=treatment.points,
        backward=item.backward,
        seconds=treatment.seconds,
    )
    origin = await origin_of(slot.worker, request, slot.runtime)
    try:
        drafts = await drafted(origin, treatment.stage, "usual")
    except anyio.BrokenWorkerProcess as error:
        return {"status": "crashed", "why": str(error)}
    if "refusal" in drafts:
        raise NotConvertible(drafts["refusal"]["message"], drafts["refusal"]["hint"])
    (way,) = drafts["ways"].values()
    file = f"drafts/{item.key.replace(':', '/')}.py"
    await anyio.to_thread.run_sync(write_atomically, treatment.out / file, way["text"])
    counted = {"kernels": way["kernels"], "calls": way["calls"], "left": way["left"]}
    return {"status": "drafted", "why": "", "file": file, "made": digest_of(way["text"]), **counted}


async def validate_candidate(
    slot: Slot, treatment: Treatment, item: SweepItem, candidate: Candidate
) -> Record:
    """`passed`, `failed` or `undecided`, as `validate` decides until the first wrong case; `timed_out` or
    `crashed` where that is all that its wrong cases did: another try, with more time, may end otherwise.
    """
    request = ValidationRequest(
        candidate=candidate.target,
        reference=item.problem,
        options=item.options,
        points=treatment.points,
        allow_torch=candidate.allow_torch,
        backward=item.backward,
        seed=SEED,
        seconds=treatment.seconds,
        stop="at once",
    )
    verdict = await validate(slot.worker, request, slot.runtime)
    violations = violations_of(verdict)
    ends = {case.status for case in verdict.cases if case.status in WRONG}
    return {
        "status": ends.pop() if ends in UNFINISHED and not violations else verdict.verdict,
        "why": "" if verdict.verdict == "passed" else verdict.summary[:LONGEST],
        "cases": len(verdict.cases),
        "violations": sorted(violations),
        "mismatches": sorted({m.kind for case in verdict.cases for m in case.mismatches}),
        "replay": verdict.replay,
    }


def violations_of(verdict: Verdict) -> set[str]:
    """The kinds of what the candidate may not do, in its cases and to its process."""
    every = [*verdict.violations, *(v for case in verdict.cases for v in case.violations)]
    stopped = [case.stopped_by for case in verdict.cases if case.stopped_by]
    withheld = any(case.reason == "reference_withheld" for case in verdict.cases)
    return {v.kind for v in (*every, *stopped)} | ({CALLS_THE_REFERENCE} if withheld else set())


async def audit_candidate(slot: Slot, treatment: Treatment, item: SweepItem, candidate: Candidate) -> Record:
    """`clean`, `not run` or `faulty`: by its source, and compiled where its inputs are declared."""

    async def choose() -> Runtime:
        return slot.runtime

    request = AuditRequest(
        targets=(candidate.target,),
        evidence="compiled",
        reference=item.problem,
        options=item.options,
        archs=AUDITED_FOR,
        fail_on="high",
        seconds=treatment.seconds,
    )
    report = await audit(slot.worker, request, choose, Unheard())
    return {"status": report.verdict, "why": first_finding(report), "findings": counts_of(report)}


def first_finding(report: AuditReport) -> str:
    if report.verdict != "faulty":
        return ""
    worst = report.findings[0]
    return f"{worst.rule} in line {worst.line}: {worst.message}"[:LONGEST]


def counts_of(report: AuditReport) -> dict[str, int]:
    """How many findings there are of each severity."""
    counts = {severity: sum(f.severity == severity for f in report.findings) for severity in SEVERITIES}
    return {severity: count for severity, count in counts.items() if count}


class Unheard:
    """A ProgressListener of phases whose items are the progress."""

    async def progress(self, done: float, total: float | None, message: str) -> None: ...

    async def item(self, result: dict[str, Any]) -> None: ...


async def time_candidate(slot: Slot, treatment: Treatment, item: SweepItem, candidate: Candidate) -> Record:
    """`measured`, beside eager and torch.compile at each size."""
    return await measured(slot, treatment, item, candidate, None)


async def tune_candidate(slot: Slot, treatment: Treatment, item: SweepItem, candidate: Candidate) -> Record:
    """As `time`, once better configurations of its autotuned kernels were searched for."""
    return await measured(slot, treatment, item, candidate, treatment.tune_seconds)


async def measured(
    slot: Slot, treatment: Treatment, item: SweepItem, candidate: Candidate, tune_seconds: float | None
) -> Record:
    request = BenchmarkRequest(
        candidate=candidate.target,
        reference=item.problem,
        options=item.options,
        points=treatment.points,
        baselines=("eager", "compile"),
        passes="both" if item.backward else "forward",
        tune_seconds=tune_seconds,
        seconds=treatment.seconds,
        seed=SEED,
        into=treatment.out / "timings" / item.key.replace(":", "/"),
        force=True,
    )
    result = await benchmark(slot.worker, request, slot.runtime)
    return record_of_timing(result)


def record_of_timing(result: Benchmark) -> Record:
    """The sizes with their medians; `void` where the figures cannot be trusted."""
    sizes = [sizes_of(table) for table in result.tables]
    void = result.verdict == "void"
    return {
        "status": "void" if void else "measured",
        "why": result.summary[:LONGEST] if void else "",
        "device": result.device,
        "sizes": sizes,
        "flags": sorted({flag.kind for table in result.tables for flag in table.flags}),
    }


def sizes_of(table: TimingTable) -> dict[str, Any]:
    """One size: medians in milliseconds, and the kernel's share of the limit; None: not measured."""
    timings = {label: table.of(label) for label in (KERNEL, FROZEN, EAGER, COMPILE)}
    medians = {label: timing.median_ms for label, timing in timings.items() if timing}
    kernel = min(
        (t for t in (timings[KERNEL], timings[FROZEN]) if t), key=lambda t: t.median_ms, default=None
    )
    return {
        "dims": table.dims,
        "kernel_ms": kernel.median_ms if kernel else None,
        "eager_ms": medians.get(EAGER),
        "compile_ms": medians.get(COMPILE),
        "share_of_limit": kernel.share_of_limit if kernel else None,
        "failed": table.failed,
    }


def geometric_mean(ratios: list[float]) -> float | None:
    """None of no ratios."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


OfCandidate = Callable[[Slot, Treatment, SweepItem, Candidate], Awaitable[Record]]
_OF_CANDIDATES: Mapping[PhaseName, OfCandidate] = {
    "validate": validate_candidate,
    "audit": audit_candidate,
    "tune": tune_candidate,
    "time": time_candidate,
}
PHASES: tuple[PhaseName, ...] = ("draft", *_OF_CANDIDATES)
"""In the order in which they are done."""
