"""One side's process in a validation: handed requests one by one, replaced when it is lost."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio

from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.conversation import Conversation, Ended
from pytorch_to_triton.schema.job import Failure, Job, Outcome, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import HINTS, refusal_of, refusal_of_failure
from pytorch_to_triton.validate.behavior import cut
from pytorch_to_triton.validate.judge import OK, RunOutcome
from pytorch_to_triton.validate.observation import Configurations, SandboxViolation, Traces

if TYPE_CHECKING:
    from pytorch_to_triton.worker import wire

    Item = wire.ReferenceItem | wire.CandidateItem
    Request = wire.ReferenceRequest | wire.CandidateRequest

LOSSES = 3
"""After this many crashes and time-outs of one side, its further cases are not run."""
EXCUSED = ("lost", "answered")
"""Ends that are nobody's fault, once for a request: ours, and that of a process which was done."""
LONGEST = 400
"""Characters of an exception's text: some hold a whole array."""


class Gone(Exception):
    """The request has no answer; `attempt` says what became of it."""

    def __init__(self, attempt: RunOutcome) -> None:
        super().__init__(attempt.why)
        self.attempt = attempt


@dataclass
class Losses:
    """Crashes and time-outs of all processes of one side."""

    count: int = 0


@dataclass
class Lane:
    """A process that answers requests in their order; after a crash or a time-out a fresh one takes the next.

    Several tasks may ask at once: each waits for its turn.
    """

    worker: WorkerClient
    runtime: Runtime
    job: Job
    target: Target
    seconds: float
    """How long loading, and each answer, may take."""
    losses: Losses = field(default_factory=Losses)
    traces: list[Traces] = field(default_factory=list)
    """What its processes left behind."""
    configurations: list[Configurations] = field(default_factory=list)
    """Which configurations of autotuned kernels were run."""
    loaded: "Item | None" = None
    """What the process reported once the target was loaded."""
    unloadable: RunOutcome | None = None
    """Set where the target's file did what it may not do while it was imported."""
    _line: Conversation | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    async def start(self) -> "Item":
        """Start a process and load the target: the item that says so. Raises TargetBroken, Gone."""
        async with self._turn:
            return await self._with_patience(None)

    async def answer(self, request: "Request") -> "Item":
        """The answer to one request. Raises Gone, and TargetBroken where the target cannot be used at all."""
        async with self._turn:
            if self.unloadable is not None:
                raise Gone(self.unloadable)
            if self.losses.count >= LOSSES:
                raise Gone(RunOutcome("skipped", f"not run after {self.losses.count} crashes or time-outs"))
            return await self._with_patience(request)

    async def finish(self) -> RunOutcome:
        """Let the process end, and see whether it ended well; the next request starts a fresh one."""
        async with self._turn:
            if self._line is None:
                return OK
            outcome = await self._line.end(seconds=self.seconds)
            await self._drop()
            if outcome.answer is None:
                return lost(outcome, self.seconds)
            if self.job.kind == "candidate":
                answer = cast("wire.CandidateAnswer", outcome.answer)
                self.traces.append(Traces.model_validate(answer["traces"]))
                self.configurations += map(Configurations.model_validate, answer["configurations"])
            return OK

    async def close(self) -> None:
        """Kill the process."""
        await self._drop()

    async def _with_patience(self, request: "Request | None") -> "Item":
        """A request that our own machinery lost is tried once more; a process that ended well is replaced."""
        excused: set[str] = set()
        while True:
            try:
                return await self._asked(request)
            except Ended as end:
                await self._drop()
                status = end.outcome.status
                if status in EXCUSED and status not in excused:
                    excused.add(status)
                    continue
                if status != "lost":
                    self.losses.count += 1
                raise Gone(lost(end.outcome, self.seconds)) from end

    async def _asked(self, request: "Request | None") -> "Item":
        line = await self._ready()
        if request is None:
            assert self.loaded is not None
            return self.loaded
        try:
            item = await self._noted(line, cast("Item", await line.ask(request, seconds=self.seconds)))
        except Ended as end:
            self._refuse_unusable(end.outcome)
            raise
        return item

    async def _noted(self, line: Conversation, item: "Item") -> "Item":
        """The item that follows the violations, which the process reports as they happen."""
        while item["event"] == "violation":
            violation = SandboxViolation.model_validate(item["violation"])
            self.traces.append(Traces(sandbox_violations=(violation,)))
            item = cast("Item", await line.item(seconds=self.seconds))
        return item

    async def _ready(self) -> Conversation:
        """The line to a process that has loaded the target."""
        if self._line is not None:
            return self._line
        line = await self._stack.enter_async_context(self.worker.converse(self.job, self.runtime))
        try:
            loaded = await self._noted(line, cast("Item", await line.item(seconds=self.seconds)))
        except Ended as end:
            self._refuse_unusable(end.outcome)
            if end.outcome.status != "lost" and not end.outcome.items:
                raise refusal_of(end.outcome, self.target) from None
            raise
        if loaded["event"] == "candidate_loaded":
            self.traces.append(Traces.model_validate(loaded["traces"]))
        self.loaded = loaded
        self._line = line
        return line

    def _refuse_unusable(self, outcome: Outcome) -> None:
        """Raises the caller's mistake behind a failure, or Gone where misconduct is behind it."""
        if outcome.failure is None or outcome.failure.type not in HINTS:
            return
        if not any(found.sandbox_violations for found in self.traces):
            raise refusal_of_failure(outcome.failure)
        self.unloadable = RunOutcome("raised", outcome.failure.message)
        raise Gone(self.unloadable)

    async def _drop(self) -> None:
        self._line = None
        await self._stack.aclose()


def lost(outcome: Outcome, seconds: float) -> RunOutcome:
    """What became of a request whose process has ended."""
    if outcome.status == "timed_out":
        return RunOutcome("timed_out", f"did not return within {seconds:g} s")
    if outcome.status == "lost":
        return RunOutcome("lost", f"could not be run: {outcome.detail}")
    return RunOutcome("crashed", f"ended its process: {outcome.detail or 'it returned without a result'}")


def attempt_of(item: "Item") -> RunOutcome:
    """What an answer says of the case: it returned, or raised."""
    if item["event"] != "raised" and item["event"] != "reference_raised":
        return OK
    failure = Failure.model_validate(item["failure"])
    return RunOutcome("raised", raised(failure), failure)


def raised(failure: Failure) -> str:
    """An exception in a sentence, with the user's line."""
    place = f" at {Path(failure.file).name}:{failure.line}" if failure.file else ""
    # CUDA's errors go on for paragraphs about environment variables.
    message = failure.message.partition("\n")[0] if "CUDA" in failure.message else failure.message
    return f"raised {failure.type}{place}: {cut(message, LONGEST)}"
