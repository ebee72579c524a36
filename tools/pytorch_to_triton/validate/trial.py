"""Trying one candidate: cases go from the reference's process to the candidate's, and back to be compared."""

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream

from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.job import Job
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.cases import telling_cases
from pytorch_to_triton.validate.conclusion import WRONG
from pytorch_to_triton.validate.judge import candidate_failed, judge_case, reference_failed
from pytorch_to_triton.validate.policy import Policy
from pytorch_to_triton.validate.request import Stop
from pytorch_to_triton.validate.run_outcome import OK, RunOutcome
from pytorch_to_triton.validate.target_worker import (
    Item,
    LostAnswer,
    Prepared,
    ReferenceProcess,
    TargetWorker,
    ValidationSetting,
)
from pytorch_to_triton.worker.wire import validation
from pytorch_to_triton.worker.wire.observation import Observation, Traces

NEEDS = ("triton.experimental.gluon", "numpy.ma")
"""What Triton imports at a process's first launch, and numpy when it first looks for unique values."""
MOST_WORKERS = 6
CORES_A_WORKER = 3
"""On a device several processes run the candidate's cases, if there are cores for them: most of the time is
compilation."""
BATCH_ELEMENTS = 2**27
"""At most so many elements lie on disk, prepared and not yet compared; at least one case."""

NO_OBSERVATION = Observation()
Unit = list[Case]
"""Cases of the same sizes and dtypes: one process calls them all, so that results kept by what inputs look
like are found out; and they share what is compiled."""


@dataclass
class CandidateWorkers:
    """The processes that run one candidate on the cases that they are handed."""

    setting: ValidationSetting
    target: Target
    name: str
    """What the exchange folder calls the candidate."""
    secret: tuple[Path, ...]
    """Paths that the candidate must not read."""
    compilation: validation.Compilation | None = None
    """How its kernels are compiled, whatever their launches say."""
    workers: list[TargetWorker] = field(init=False)
    """On a device several processes; under the interpreter one, whose calls come in order."""

    def __post_init__(self) -> None:
        crashes, setting, job = list[RunOutcome](), self.setting, self.job()
        self.workers = [
            TargetWorker(setting.worker, setting.runtime, job, self.target, setting.seconds, crashes)
            for _ in range(1 if setting.runtime.interpreter else device_workers())
        ]

    def job(self, red_zone_bytes: int | None = None) -> Job:
        """What each of its processes is started with.

        Without `red_zone_bytes` the worker chooses what suits the device.
        """
        return Job(
            kind="candidate",
            arguments={
                "target": self.target.as_json(),
                "setting": validation.CandidateSetting(
                    **vars(self.setting.shared), side=self.name, compilation=self.compilation
                ),
                "secret": [str(path) for path in self.secret],
                "red_zone_bytes": red_zone_bytes,
            },
            needs=NEEDS,
        )

    async def start(self) -> Description | None:
        """Load the candidate; what it is, unless it was stopped meanwhile. Raises TargetBroken."""
        try:
            item = await self.workers[0].start()
        except LostAnswer:
            return None
        assert isinstance(item, validation.CandidateLoadedItem)
        return Description.model_validate(item.description)

    @property
    def traces(self) -> list[Traces]:
        """What all its processes left behind."""
        return [traces for worker in self.workers for traces in worker.traces]

    async def close(self) -> None:
        """Kill its processes."""
        for worker in self.workers:
            await worker.close()


@dataclass(frozen=True)
class JudgedCase:
    """The result of a case, and what was observed of the candidate's call."""

    result: CaseResult
    observation: Observation = NO_OBSERVATION


@dataclass(frozen=True)
class ValidationTrial:
    """A candidate that is being validated."""

    setting: ValidationSetting
    policy: Policy
    reference: ReferenceProcess
    candidate: CandidateWorkers
    stop: Stop = "never"
    undo_trials: bool = False
    """Whether what autotuned kernels do on trial is undone before the launch that counts."""
    all_twice: bool = False
    """Whether each case is run twice under the interpreter, not the declared ones alone."""

    async def run(self, cases: Sequence[Case], listener: ProgressListener | None = None) -> list[JudgedCase]:
        """Run both sides on the cases, and judge each, in their order; some are left out as `stop` says."""
        done: dict[str, JudgedCase] = {}
        for batch in self.batches(cases):
            done |= await TrialRun(self, listener, len(cases), done).of(batch)
            wrong = (judged.result for judged in done.values() if judged.result.status in WRONG)
            # Where strides are large, it may be a limit, whatever the others show.
            if self.stop != "never" and any(result.group != "large_stride" for result in wrong):
                break
        return [done[case.name] for case in cases if case.name in done]

    def batches(self, cases: Sequence[Case]) -> Iterator[list[Case]]:
        """What is run before it is asked whether to go on."""
        if self.stop == "early":
            first = telling_cases(cases)
            yield first
            names = {case.name for case in first}
            cases = [case for case in cases if case.name not in names]
        yield from batches(cases, 0 if self.stop == "at once" else BATCH_ELEMENTS)

    async def finish(self, judged: Sequence[JudgedCase], last: Case | None) -> list[JudgedCase]:
        """What was judged, once the candidate's processes have ended.

        Nothing that a process reported can be relied on if it ends badly: then the last case fails.
        """
        ends = [await worker.finish() for worker in self.candidate.workers]
        bad = next((end for end in ends if end is not OK), None)
        if bad is None or last is None:
            return list(judged)
        failed = candidate_failed(last, bad)
        return [replace(each, result=failed) if each.result.name == last.name else each for each in judged]


@dataclass
class TrialRun:
    """Cases in progress: prepared one after the other, called side by side, compared as they return."""

    trial: ValidationTrial
    listener: ProgressListener | None
    total: int
    done: dict[str, JudgedCase]
    prepared: dict[str, Prepared] = field(default_factory=dict)
    ready: dict[str, anyio.Event] = field(default_factory=dict)
    """Set for each case that is prepared."""

    async def of(self, cases: Sequence[Case]) -> dict[str, JudgedCase]:
        """Each case as it was judged, by name."""
        self.ready = {case.name: anyio.Event() for case in cases}
        send, receive = anyio.create_memory_object_stream[Unit](math.inf)
        for unit in units(cases):
            send.send_nowait(unit)
        send.close()
        async with task_group() as group:
            group.start_soon(self.prepare, cases)
            for worker in self.trial.candidate.workers:
                group.start_soon(self.call, worker, receive.clone(), group)
            receive.close()
        return self.done

    async def prepare(self, cases: Sequence[Case]) -> None:
        """Prepare one case after the other; what the reference cannot do ends here."""
        for case in cases:
            prepared = self.prepared[case.name] = await self.trial.reference.prepare(case)
            if prepared.outcome is not OK:
                await self.record(case, reference_failed(case, prepared.outcome))
            self.ready[case.name].set()

    async def call(
        self, worker: TargetWorker, units: MemoryObjectReceiveStream[Unit], group: TaskGroup
    ) -> None:
        """Call the candidate on whole units, each case as soon as it is prepared."""
        async with units:
            async for unit in units:
                for case in unit:
                    await self.ready[case.name].wait()
                    if self.prepared[case.name].outcome is OK:
                        outcome, observation = await self.answer_of(worker, case)
                        group.start_soon(self.conclude, case, outcome, observation)

    async def answer_of(self, worker: TargetWorker, case: Case) -> tuple[RunOutcome, Observation]:
        if self.listener:
            await self.listener.progress(len(self.done), self.total, case.name)
        try:
            item = await worker.answer(self.request(case))
        except LostAnswer as lost:
            return lost.outcome, NO_OBSERVATION
        return worker.outcome_of(item), observation_of(item, self.prepared[case.name])

    def request(self, case: Case) -> validation.CandidateRequest:
        """The case as the candidate's process takes it."""
        before = self.prepared.get(case.again_after or "")
        return replace(
            request_for(case, self.prepared[case.name]),
            # A device is quick enough to run everything twice, and only there do programs run at once.
            twice=self.trial.all_twice
            or case.group in ("declared", "reduced")
            or not self.trial.setting.runtime.interpreter,
            # Which way a candidate takes may depend on all but values.
            without_gradients=self.trial.setting.backward and case.group != "special",
            again=before.id if before is not None and before.outcome is OK else None,
            undo_trials=self.trial.undo_trials,
        )

    async def conclude(self, case: Case, outcome: RunOutcome, observation: Observation) -> None:
        """Compare, where there is something to compare, and judge."""
        reference, policy, name = self.trial.reference, self.trial.policy, self.trial.candidate.name
        if outcome is not OK:
            result = candidate_failed(case, outcome, observation, policy)
        elif isinstance(compared := await reference.compare(case, name), RunOutcome):
            result = reference_failed(case, compared)
        else:
            result = judge_case(case, compared, observation, policy)
        await self.record(case, result, observation)

    async def record(self, case: Case, result: CaseResult, observation: Observation = NO_OBSERVATION) -> None:
        self.done[case.name] = JudgedCase(result, observation)
        await self.trial.reference.done_with(case)


def device_workers() -> int:
    """How many processes share the cases on a device."""
    return max(1, min((os.cpu_count() or 1) // CORES_A_WORKER, MOST_WORKERS))


def request_for(case: Case, prepared: Prepared) -> validation.CandidateRequest:
    """A case as job `candidate` takes it: one call, with trials as they are."""
    tensors = tensors_in(case.arguments)
    return validation.CandidateRequest(
        id=prepared.id,
        name=case.name,
        large_stride=tuple(tensor.name for tensor in tensors if tensor.layout == "large_stride"),
        configuration=case.configuration,
    )


def observation_of(item: Item, prepared: Prepared) -> Observation:
    """What an answer of job `candidate` holds, beside what is known of the reference."""
    assert isinstance(item, validation.ReturnedItem | validation.RaisedItem)
    return replace(item.observation, aliases_of_reference=prepared.aliases, reference_draws=prepared.draws)


def units(cases: Sequence[Case]) -> list[Unit]:
    """The cases in units, both in their order."""
    by_shape: dict[tuple[object, ...], Unit] = {}
    for case in cases:
        by_shape.setdefault((*case.dims.items(), *case.dtypes.items()), []).append(case)
    return list(by_shape.values())


def batches(cases: Sequence[Case], most_elements: int = BATCH_ELEMENTS) -> Iterator[list[Case]]:
    """The cases, unit by unit, in lists that hold so many elements at most, and one unit at least."""
    batch: list[Case] = []
    held = 0
    for unit in units(cases):
        elements = sum(case.elements for case in unit)
        if batch and held + elements > most_elements:
            yield batch
            batch, held = [], 0
        batch += unit
        held += elements
    if batch:
        yield batch
