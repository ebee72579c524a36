"""Trying one candidate: cases go from the reference's process to the candidate's, and back to be compared."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream
from pydantic import JsonValue

from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.job import Job
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.behavior import Policy
from pytorch_to_triton.validate.error_statistics import CaseStatistics
from pytorch_to_triton.validate.judge import (
    OK,
    RunOutcome,
    candidate_failed,
    judge_case,
    reference_failed,
)
from pytorch_to_triton.validate.lane import Gone, Item, Lane, Losses, attempt_of
from pytorch_to_triton.validate.observation import Observation, Traces
from pytorch_to_triton.validate.reference_process import Prepared, ReferenceProcess
from pytorch_to_triton.validate.validation_setting import ValidationSetting

NEEDS = ("triton.experimental.gluon",)
"""What Triton imports at a process's first launch."""
MOST_LANES = 6
CORES_A_LANE = 3
"""On a device several processes run the candidate's cases, if there are cores for them: most of the time is
compilation."""
BATCH_ELEMENTS = 2**27
"""So many elements at most lie on disk, prepared and not yet compared; one case at least."""

Unit = list[Case]
"""Cases of the same sizes and dtypes: one process calls them all, so that results kept by what inputs look
like are found out; and they share what is compiled."""


@dataclass
class CandidateWorkers:
    """The processes that run one candidate on the cases that they are handed."""

    target: Target
    side: str
    """Its name in the exchange folder."""
    secret: tuple[Path, ...]
    """Files and folders that are none of its business."""
    lanes: list[Lane]

    @staticmethod
    def of(
        setting: ValidationSetting, target: Target, side: str, secret: tuple[Path, ...]
    ) -> "CandidateWorkers":
        """On a device several processes; under the interpreter one, whose calls come in order."""
        arguments: dict[str, JsonValue] = {
            "target": target.model_dump(mode="json"),
            "setting": {**setting.shared, "side": side},
            "secret": [str(path) for path in secret],
            "red_zone_bytes": None,
        }
        losses = Losses()
        count = 1 if setting.runtime.interpreter else device_lanes()
        jobs = [
            Job(kind="candidate", arguments={**arguments, "turn": turn}, needs=NEEDS) for turn in range(count)
        ]
        lanes = [Lane(setting.worker, setting.runtime, job, target, setting.seconds, losses) for job in jobs]
        return CandidateWorkers(target, side, secret, lanes)

    @property
    def traces(self) -> list[Traces]:
        """What all its processes left behind."""
        return [traces for lane in self.lanes for traces in lane.traces]

    @property
    def configurations(self) -> dict[str, tuple[int, int]]:
        """Of each autotuned kernel, how many of how many configurations were run."""
        tried: dict[str, set[str]] = {}
        offered: dict[str, int] = {}
        for found in (found for lane in self.lanes for found in lane.configurations):
            tried.setdefault(found.kernel, set()).update(map(str, found.tried))
            offered[found.kernel] = found.of
        return {kernel: (len(tried[kernel]), offered[kernel]) for kernel in tried}

    async def close(self) -> None:
        """Kill its processes."""
        for lane in self.lanes:
            await lane.close()


@dataclass
class ValidationTrial:
    """A candidate that is being validated."""

    setting: ValidationSetting
    policy: Policy
    reference: ReferenceProcess
    candidate: CandidateWorkers
    listener: ProgressListener | None
    observations: list[Observation] = field(default_factory=list)
    """What was seen of each call."""

    async def run(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Run both sides on the cases, and judge each, in their order."""
        done: dict[str, CaseResult] = {}
        for batch in batches(cases):
            done |= await TrialRun(self, len(cases), done).of(batch)
        return [done[case.name] for case in cases]

    async def finish(self, results: Sequence[CaseResult], last: Case | None) -> list[CaseResult]:
        """The results, once the candidate's processes have ended: one that ends badly has told nothing that
        can be relied on."""
        ends = [await lane.finish() for lane in self.candidate.lanes]
        bad = next((end for end in ends if end is not OK), None)
        if bad is None or last is None:
            return list(results)
        return [candidate_failed(last, bad) if r.name == last.name else r for r in results]


@dataclass
class TrialRun:
    """Some cases on their way: prepared one after the other, called in lanes, compared as they return."""

    trial: ValidationTrial
    total: int
    done: dict[str, CaseResult]
    prepared: dict[str, Prepared] = field(default_factory=dict)
    ready: dict[str, anyio.Event] = field(default_factory=dict)
    """Set for each case that is prepared."""

    async def of(self, cases: Sequence[Case]) -> dict[str, CaseResult]:
        """The result of each case by name."""
        self.ready = {case.name: anyio.Event() for case in cases}
        send, receive = anyio.create_memory_object_stream[Unit](math.inf)
        for unit in units(cases):
            send.send_nowait(unit)
        send.close()
        async with task_group() as group:
            group.start_soon(self.prepare, cases)
            for lane in self.trial.candidate.lanes:
                group.start_soon(self.call, lane, receive.clone(), group)
            receive.close()
        return self.done

    async def prepare(self, cases: Sequence[Case]) -> None:
        """Prepare one case after the other; what the reference cannot do ends here."""
        for case in cases:
            found = self.prepared[case.name] = await self.trial.reference.prepared(case)
            if found.attempt is not OK:
                await self.finished(case, without_reference(case, found.attempt))
            self.ready[case.name].set()

    async def call(self, lane: Lane, units: MemoryObjectReceiveStream[Unit], group: TaskGroup) -> None:
        """Call the candidate on whole units, each case as soon as it is prepared."""
        async with units:
            async for unit in units:
                for case in unit:
                    await self.ready[case.name].wait()
                    if self.prepared[case.name].attempt is OK:
                        attempt, item = await self.called(lane, case)
                        group.start_soon(self.conclude, case, attempt, item)

    async def called(self, lane: Lane, case: Case) -> tuple[RunOutcome, Item]:
        if self.trial.listener:
            await self.trial.listener.progress(len(self.done), self.total, f"candidate: {case.name}")
        try:
            item = await lane.answer(self.request(case))
        except Gone as gone:
            return gone.attempt, {}
        return attempt_of(item), item

    def request(self, case: Case) -> Item:
        """The case as the candidate's process takes it."""
        # A device is quick enough to run everything twice, and only there do programs run at once.
        twice = case.group in ("declared", "reduced") or not self.trial.setting.runtime.interpreter
        request = request_for(case, self.prepared[case.name], twice=twice)
        before = self.prepared.get(case.again_after or "")
        if before is not None and before.attempt is OK:
            request["again"] = before.request["id"]
        return request

    async def conclude(self, case: Case, attempt: RunOutcome, item: Item) -> None:
        """Compare, where there is something to compare, and judge."""
        trial = self.trial
        seen = Observation.model_validate(item.get("facts") or {})
        seen = seen.without_aliases(self.prepared[case.name].aliases)
        trial.observations.append(seen)
        if attempt is not OK:
            return await self.finished(case, candidate_failed(case, attempt, seen, trial.policy))
        found = await trial.reference.compared(case, trial.candidate.side)
        if isinstance(found, RunOutcome):
            return await self.finished(case, without_reference(case, found))
        statistics = CaseStatistics.model_validate(found)
        return await self.finished(case, judge_case(case, statistics, seen, trial.policy))

    async def finished(self, case: Case, result: CaseResult) -> None:
        self.done[case.name] = result
        await self.trial.reference.done_with(case)


def device_lanes() -> int:
    """How many processes share the cases on a device."""
    return max(1, min((os.cpu_count() or 1) // CORES_A_LANE, MOST_LANES))


def request_for(case: Case, prepared: Prepared, *, twice: bool) -> Item:
    """A case as job `subject` takes it; `twice`: a second run must give the same bits."""
    far = [tensor.name for tensor in tensors_in(case.arguments) if tensor.layout == "far"]
    return {"id": prepared.request["id"], "name": case.name, "far": far, "twice": twice, "again": None}


def without_reference(case: Case, attempt: RunOutcome) -> CaseResult:
    """The reference has no result; where our own machinery is why, that says nothing about anybody."""
    if attempt.status == "lost":
        return CaseResult(name=case.name, group=case.group, status="lost", why=f"It {attempt.why}")
    return reference_failed(case, attempt.why)


def units(cases: Sequence[Case]) -> list[Unit]:
    """The cases in units, both in their order."""
    found: dict[tuple[object, ...], Unit] = {}
    for case in cases:
        key = (*case.dims.items(), *case.dtypes.items())
        found.setdefault(key, []).append(case)
    return list(found.values())


def batches(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """The cases, unit by unit, in lists that hold BATCH_ELEMENTS at most, and one unit at least."""
    batch: list[Case] = []
    held = 0
    for unit in units(cases):
        elements = sum(case.elements for case in unit)
        if batch and held + elements > BATCH_ELEMENTS:
            yield batch
            batch, held = [], 0
        batch += unit
        held += elements
    if batch:
        yield batch
