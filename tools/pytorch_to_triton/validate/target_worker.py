"""The processes of a validation: each is given requests one by one, and replaced when it is lost."""

import hashlib
import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
import psutil

from pytorch_to_triton import places
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.job_channel import Ended, JobChannel
from pytorch_to_triton.jobs.no_answer import cache_required
from pytorch_to_triton.jobs.outcome import KILLED
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import HINTS, refusal_of, refusal_of_failure
from pytorch_to_triton.validate.run_outcome import (
    OK,
    RunOutcome,
    comparison_failed,
    outcome_of_exception,
    without_answer,
)
from pytorch_to_triton.worker.wire import validation
from pytorch_to_triton.worker.wire.as_json import decoded
from pytorch_to_triton.worker.wire.comparison import Unordered
from pytorch_to_triton.worker.wire.observation import SandboxViolation, Traces
from pytorch_to_triton.worker.wire.statistics import CaseStatistics

SEED_BYTES = 6
"""Seeds stay below 2**48: JSON numbers are exact that far."""
MOST_CRASHES = 3
"""After so many crashes and time-outs the further cases are not run."""
MOST_ENDLESS = 2
"""And after so many time-outs in a kernel of the candidate's: it loops for ever, and each takes its time."""
RETRYABLE = ("lost", "answered", "killed")
"""Ends that need be nobody's fault, once for a request: our own, that of a process which was done, and a kill
from outside. What asks for all of the memory is killed again."""
NEEDS = ("torch.fx.experimental.symbolic_shapes", "torch._subclasses.schema_check_mode")
"""What torch's own meta kernels import in most references' processes."""
KEPT_ELEMENTS = 2**27
"""Inputs stay on disk for further candidates up to this many elements over all cases."""


@dataclass(frozen=True)
class ValidationSetting:
    """One validation, or one conversion: its folder, its seed, where it runs."""

    worker: WorkerClient
    runtime: Runtime
    seconds: float
    """How long one call of one side may take."""
    folder: Path
    """The exchange folder."""
    seed: int
    backward: bool
    """Whether gradients are compared too."""

    @property
    def shared(self) -> validation.ExchangeSetting:
        """As the jobs take it."""
        device = "cpu" if self.runtime.interpreter else "cuda"
        return validation.ExchangeSetting(folder=str(self.folder), device=device, backward=self.backward)

    def seed_of(self, name: str) -> int:
        """The seed of one case: it tells nothing about those of others."""
        digest = hashlib.sha256(f"{self.seed}\0{name}".encode()).digest()
        return int.from_bytes(digest[:SEED_BYTES], "big")


@contextmanager
def exchange_folder() -> Iterator[Path]:
    """A new folder, removed with the block; those that ended processes left behind are removed first."""
    root = places.cache() / "exchange"
    folder = root / f"{os.getpid()}-{secrets.token_hex(4)}"
    with cache_required():
        root.mkdir(parents=True, exist_ok=True)
        for old in root.iterdir():
            pid = old.name.partition("-")[0]
            if not (pid.isdigit() and psutil.pid_exists(int(pid))):
                shutil.rmtree(old, ignore_errors=True)
        folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


Item = validation.ReferenceItem | validation.CandidateItem
Request = validation.ReferenceRequest | validation.CandidateRequest
Expected = TypeVar("Expected", bound=validation.ReferenceItem)


class LostAnswer(Exception):
    """The request has no answer; `outcome` says why."""

    def __init__(self, outcome: RunOutcome) -> None:
        super().__init__(outcome.why)
        self.outcome = outcome


@dataclass
class TargetWorker:
    """A process that answers requests in their order; after a crash or a time-out a fresh one takes the next.

    Several tasks may ask at once: each waits for its turn.
    """

    client: WorkerClient
    runtime: Runtime
    job: Job
    target: Target
    seconds: float
    """How long loading, and each answer, may take."""
    crashes: list[RunOutcome] = field(default_factory=list)
    """Crashes and time-outs, of all processes of one candidate."""
    traces: list[Traces] = field(default_factory=list)
    """What its processes left behind."""
    loaded: Item | None = None
    """What the process reported once the target was loaded."""
    unloadable: RunOutcome | None = None
    """Set where the target's file did what it may not do while it was imported."""
    _channel: JobChannel | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def start(self) -> Item:
        """Start a process and load the target: the item that it reported. Raises TargetBroken, LostAnswer."""
        async with self._turn:
            return await self._ask_with_retry(None)

    async def answer(self, request: Request) -> Item:
        """The answer to one request. Raises LostAnswer, and TargetBroken where the target is of no use."""
        async with self._turn:
            if self.unloadable is not None:
                raise LostAnswer(self.unloadable)
            if is_enough(self.crashes):
                what = "time-outs" if all(crash.kernel for crash in self.crashes) else "crashes or time-outs"
                why = f"not run after {len(self.crashes)} {what} (the last {self.crashes[-1].why})"
                raise LostAnswer(RunOutcome("not_run", why))
            return await self._ask_with_retry(request)

    def outcome_of(self, item: Item) -> RunOutcome:
        """How the call ended that an answer is about: it returned, or raised."""
        if isinstance(item, validation.RaisedItem | validation.ReferenceRaisedItem):
            return outcome_of_exception(item.failure, self.sandbox_violations)
        return OK

    @property
    def sandbox_violations(self) -> list[SandboxViolation]:
        """What its processes did that is refused, so far."""
        return [violation for traces in self.traces for violation in traces.sandbox_violations]

    async def finish(self) -> RunOutcome:
        """Let the process end, and check whether it ended well; the next request starts a fresh one."""
        async with self._turn:
            if self._channel is None:
                return OK
            outcome = await self._channel.end(seconds=self.seconds)
            await self.close()
            if outcome.detail == KILLED:
                # It had answered all: what it would have said at its end is not known.
                return RunOutcome("lost", f"could not be run to its end: {outcome.detail}")
            if outcome.answer is None:
                return without_answer(outcome, self.seconds)
            if self.job.kind == "candidate":
                answer: validation.CandidateAnswer = decoded(validation.CandidateAnswer, outcome.answer)
                self.traces.append(answer.traces)
            return OK

    async def close(self) -> None:
        """Kill the process."""
        self._channel = None
        await self._stack.aclose()

    async def _ask_with_retry(self, request: Request | None) -> Item:
        """The answer, or without a request what was loaded.

        Where the process was lost through no fault of the target's, it is tried once more.
        """
        retried: set[str] = set()
        while True:
            try:
                channel = await self._ready()
                if request is not None:
                    item = await channel.ask(request, seconds=self.seconds)
                    return await self._after_violations(channel, item)
                assert self.loaded is not None
                return self.loaded
            except Ended as end:
                self._refuse_unusable(end.outcome)
                await self.close()
                if self.job.kind == "reference" and end.outcome.status == "raised":
                    raise LostAnswer(comparison_failed(end.outcome)) from end
                status = "killed" if end.outcome.detail == KILLED else end.outcome.status
                if status in RETRYABLE and status not in retried:
                    retried.add(status)
                    continue
                lost = without_answer(end.outcome, self.seconds)
                if status != "lost":
                    self.crashes.append(lost)
                raise LostAnswer(lost) from end

    async def _after_violations(self, channel: JobChannel, arrived: dict[str, Any]) -> Item:
        """The item after the violations, which the process reports as they happen."""
        item: Item = decoded(Item, arrived)
        while isinstance(item, validation.ViolationItem):
            self.traces.append(Traces(sandbox_violations=(item.violation,)))
            item = decoded(Item, await channel.item(seconds=self.seconds))
        return item

    async def _ready(self) -> JobChannel:
        """The channel to a process that has loaded the target."""
        if self._channel is not None:
            return self._channel
        channel = await self._stack.enter_async_context(self.client.open_channel(self.job, self.runtime))
        try:
            loaded = await self._after_violations(channel, await channel.item(seconds=self.seconds))
        except Ended as end:
            self._refuse_unusable(end.outcome)
            if end.outcome.status != "lost" and not end.outcome.items:
                raise refusal_of(end.outcome, self.target) from None
            raise
        if isinstance(loaded, validation.CandidateLoadedItem):
            self.traces.append(loaded.traces)
        self.loaded = loaded
        self._channel = channel
        return channel

    def _refuse_unusable(self, outcome: Outcome) -> None:
        """Raises the caller's mistake behind a failure, or LostAnswer where a violation is behind it."""
        if outcome.failure is None or outcome.failure.type not in HINTS:
            return
        if not self.sandbox_violations:
            raise refusal_of_failure(outcome.failure)
        last = self.sandbox_violations[-1]
        self.unloadable = RunOutcome("sandbox_violation", outcome.failure.message, stopped_by=last)
        raise LostAnswer(self.unloadable)


def is_enough(crashes: Sequence[RunOutcome]) -> bool:
    """Whether after these crashes and time-outs no further case is run."""
    return len(crashes) >= MOST_CRASHES or sum(bool(crash.kernel) for crash in crashes) >= MOST_ENDLESS


@dataclass(frozen=True)
class Prepared:
    """A case whose inputs lie in the exchange folder, unless the reference could not do it."""

    outcome: RunOutcome
    id: str
    """Of the case's folders in the exchange folder."""
    seed: int
    digest: str = ""
    aliases: frozenset[tuple[str, str]] = frozenset()
    """The reference's own outputs, each with an input or another output whose memory it shares."""
    draws: bool = False
    """Whether the reference draws random numbers."""


@dataclass
class ReferenceProcess:
    """One process that prepares cases and compares what candidates returned."""

    setting: ValidationSetting
    target: Target
    worker: TargetWorker
    staged: dict[str, str] = field(default_factory=dict)
    """Digests of the candidates' files, by the names of the candidates."""
    device: str = ""
    """The device's name, once the process has started."""
    free_bytes: int | None = None
    """Of the device; None for a CPU."""
    unordered: tuple[Unordered, ...] = ()
    """Results whose order is declared free."""
    _prepared: dict[str, Prepared] = field(default_factory=dict)
    _users: Counter[str] = field(default_factory=Counter)
    _kept: int = 0
    _preparing: anyio.Lock = field(default_factory=anyio.Lock)

    @staticmethod
    def of(setting: ValidationSetting, target: Target, candidate: Target) -> "ReferenceProcess":
        """`candidate` is the first that will be compared."""
        job = Job(
            kind="reference",
            arguments={
                "target": target.as_json(),
                "candidate": candidate.as_json(),
                "setting": setting.shared,
                "state_seed": setting.seed_of("state"),
            },
            needs=NEEDS,
        )
        return ReferenceProcess(
            setting, target, TargetWorker(setting.worker, setting.runtime, job, target, setting.seconds)
        )

    async def start(self) -> Description | None:
        """Load the reference; what it is, where the process says it. Raises TargetBroken, LostAnswer."""
        item = await self.worker.start()
        assert isinstance(item, validation.ReferenceLoadedItem)
        self.device, self.free_bytes = item.device, item.free_bytes
        return None if item.description is None else Description.model_validate(item.description)

    async def stage(self, candidate: Target, name: str) -> None:
        """Write the files that the candidate will load. Raises LostAnswer."""
        item = await self.worker.answer(validation.StageRequest(name=name, candidate=candidate.as_json()))
        assert isinstance(item, validation.StagedItem)
        self.staged[name] = item.digest

    async def prepare(self, case: Case) -> Prepared:
        """The case with its inputs generated, once for all candidates; `done_with` it when it is compared.

        Raises TargetBroken where the declared comparison does not fit what the reference returns.
        """
        async with self._preparing:
            if case.name not in self._prepared:
                self._prepared[case.name] = await self._ask_to_prepare(case)
                self._kept += case.elements
        self._users[case.name] += 1
        return self._prepared[case.name]

    async def measure(self, case: Case) -> tuple[int, ...]:
        """The elements of each value that the reference computes in this case; none where that is lost."""
        request = validation.MeasureRequest(name=case.name, case=as_wire(case, secrets.token_hex(4), 0))
        item = await self._ask(request, validation.MeasuredItem)
        return () if isinstance(item, RunOutcome) else item.elements

    async def compare(self, case: Case, candidate: str) -> RunOutcome | CaseStatistics:
        """The statistics of what the candidate returned; a RunOutcome where there are none."""
        prepared = self._prepared[case.name]
        request = validation.CompareRequest(
            name=case.name,
            id=prepared.id,
            seed=prepared.seed,
            side=candidate,
            digests=(prepared.digest, self.staged[candidate]),
            unordered=self.unordered,
        )
        item = await self._ask(request, validation.ComparedItem)
        return item if isinstance(item, RunOutcome) else item.statistics

    async def done_with(self, case: Case) -> None:
        """One user less; what is too large to be kept goes with the last one."""
        self._users[case.name] -= 1
        if self._users[case.name] or self._kept <= KEPT_ELEMENTS:
            return
        prepared = self._prepared.pop(case.name)
        self._kept -= case.elements
        await self._ask(validation.ForgetRequest(name=case.name, id=prepared.id), validation.ForgottenItem)

    async def _ask_to_prepare(self, case: Case) -> Prepared:
        prepared = Prepared(OK, secrets.token_hex(4), self.setting.seed_of(case.name))
        request = validation.PrepareRequest(
            name=case.name,
            case=as_wire(case, prepared.id, prepared.seed),
            unordered=self.unordered,
        )
        item = await self._ask(request, validation.PreparedItem)
        if isinstance(item, RunOutcome):
            if item.failure is not None and item.failure.type == "ComparisonUnusable":
                raise refusal_of_failure(item.failure)
            return replace(prepared, outcome=item)
        return replace(prepared, digest=item.digest, aliases=item.aliases, draws=item.draws)

    async def _ask(self, request: Request, expected: type[Expected]) -> Expected | RunOutcome:
        """The answer, or how a call ended that has none."""
        try:
            item = await self.worker.answer(request)
        except LostAnswer as lost:
            return lost.outcome
        return item if isinstance(item, expected) else self.worker.outcome_of(item)


def as_wire(case: Case, case_id: str, seed: int) -> dict[str, Any]:
    """The case as job `reference` takes it."""
    return {**case.model_dump(mode="json"), "id": case_id, "seed": seed}
