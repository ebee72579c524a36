"""Calls that may outlast a request: each runs in the server, and requests wait for it."""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel

from pytorch_to_triton.errors import BadInput, Refusal
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton_server.names import Boundary, brief
from pytorch_to_triton_server.over_mcp.answers import Detail
from pytorch_to_triton_server.over_mcp.fit import plain
from pytorch_to_triton_server.over_mcp.kept_calls import KeptCall, State, all_kept, read_kept
from pytorch_to_triton_server.tool import Tool, ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.jobs.client import WorkerClient

HEARTBEAT_SECONDS = 1.0
_KEPT = 32
"""The number of finished calls to remember, in case an answer was lost in transit."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes a call's progress, its total where that is known, and what it is doing."""


@dataclass(frozen=True)
class Calling:
    """A tool, and what its call gets besides the arguments."""

    tool: Tool
    boundary: Boundary
    python: str | None
    detail: Detail
    """How much of the result its caller wants."""


class ListedCall(Value):
    """One call in a list."""

    job_id: str
    tool: str
    state: State
    seconds: float
    """Since it began, until its end; 0 of one that runs in another server."""
    doing: str
    """Empty of one that has ended."""


class CallList(Value):
    """The calls that this server remembers, the latest first."""

    summary: str
    next_step: str
    jobs: tuple[ListedCall, ...]


class PendingCall(Value):
    """A call that is still running, or was cancelled."""

    summary: str
    next_step: str
    job_id: str
    status: Literal["running", "cancelled"]


@dataclass(frozen=True)
class CallProgress:
    """How far a call is: its parts count their steps each from zero."""

    before: float = 0.0
    """Steps of the parts that are over."""
    done: float = 0.0
    total: float | None = None

    def after(self, done: float, total: float | None) -> "CallProgress":
        """With the latest figures; another total, or fewer steps, begin another part."""
        same = total == self.total and done >= self.done
        return CallProgress(self.before if same else self.before + (self.total or self.done), done, total)

    def shown(self, seconds: float) -> tuple[float, float | None]:
        """Progress and total. Progress has to grow: between two steps it does by ever less than one."""
        part = 1 - 1 / (1 + seconds)
        return self.before + self.done + part, None if self.total is None else self.before + self.total + 1


class LongCall:
    """One call in progress, and its result once it has finished."""

    def __init__(self, calling: Calling) -> None:
        self.id = secrets.token_hex(4)
        self.calling = calling
        self.tool = calling.tool
        self.done = anyio.Event()
        self.doing = "starting"
        """Its latest progress message."""
        self.steps = CallProgress()
        self._kept: KeptCall | None = None
        """In a file, once a client knows its job_id."""
        self._scope = anyio.CancelScope()
        self._started = time.monotonic()
        self._ended: float | None = None
        self._result: BaseModel | None = None
        self._error: Exception | None = None
        self._cancelled = False

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return round((self._ended or time.monotonic()) - self._started, 1)

    @property
    def job(self) -> ListedCall:
        """As one of a list."""
        return ListedCall(
            job_id=self.id,
            tool=self.tool.name,
            state=self._end if self.done.is_set() else "running",
            seconds=self.seconds,
            doing="" if self.done.is_set() else self.doing,
        )

    @property
    def _end(self) -> Literal["finished", "failed", "cancelled"]:
        if self._error is not None:
            return "failed"
        return "finished" if self._result is not None else "cancelled"

    async def run(
        self, open_client: "Callable[[], Awaitable[WorkerClient]]", arguments: dict[str, Any]
    ) -> None:
        """Make the call and keep its result or error; raises only when the server itself is shutting down."""
        from pytorch_to_triton.jobs.no_answer import cache_errors_refused

        try:
            with self._scope, cache_errors_refused():
                call = ToolCall(await open_client(), self, self.calling.boundary, self.calling.python)
                self._result = await self.tool.function(call, **arguments)
        except Exception as error:
            self._error = error
        finally:
            self._ended = time.monotonic()
            self.done.set()
            self._keep_end()

    def cancel(self) -> None:
        """End the call and kill its processes; does nothing to a finished call."""
        self._cancelled = True
        self._scope.cancel()

    def keep(self) -> None:
        """Let servers that start later find it: a client is told its job_id."""
        if self._kept is None:
            self._kept = KeptCall.begun(self.id, self.tool.name, self.calling.detail)
            self._kept.write()

    def _keep_end(self) -> None:
        """What a server that starts later finds; of a call that ends with its server that is nothing."""
        by_itself = self._result is not None or self._error is not None or self._cancelled
        if self._kept is None or not by_itself:
            return
        result = None if self._result is None else self._result.model_dump(mode="json")
        end = {"end": self._end, "seconds": self.seconds, "result": result, "why": why_of(self._error)}
        self._kept.model_copy(update=end).write()

    def answer(self) -> BaseModel:
        """Its result, or that it is still running or was cancelled. Raises what the call raised."""
        if self._error is not None:
            raise self._error
        if self._result is not None:
            return self._result
        if self.done.is_set():
            summary, status = f"{self.tool.name} was cancelled.", "cancelled"
            next_step = f"Call {self.tool.name} again to start over."
        else:
            summary = f"{self.tool.name} has been running for {self.seconds:.0f} s: {self.doing}."
            next_step = f'Call job with job_id "{self.id}" to wait for the result or to cancel it.'
            status = "running"
        return PendingCall(summary=summary, next_step=next_step, job_id=self.id, status=status)

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """As a ProgressListener: keep the message for the next heartbeat."""
        self.steps = self.steps.after(done, total)
        self.doing = plain(f"{message} ({done:g} of {total:g})" if total else message)

    async def item(self, result: dict[str, Any]) -> None:
        """As a ProgressListener: results are returned all together, at the end."""


def why_of(error: Exception | None) -> tuple[str, str] | None:
    """What was wrong, and what to do about it."""
    if error is None or isinstance(error, Refusal):
        return None if error is None else (error.message, error.hint)
    return f"{type(error).__name__}: {error}.", "The log of the server that ran it has the traceback."


class LongCalls:
    """The server's calls, by their job_id."""

    def __init__(self, stack: AsyncExitStack, group: TaskGroup, patience: float) -> None:
        self._stack = stack
        self._group = group
        self._worker: WorkerClient | None = None
        self._patience = patience
        """Seconds that one request waits."""
        self._calls: dict[str, LongCall] = {}

    def start(self, calling: Calling, arguments: dict[str, Any]) -> LongCall:
        """Start a call; it ends with the server."""
        self._forget_oldest()
        long_call = LongCall(calling)
        self._calls[long_call.id] = long_call
        self._group.start_soon(long_call.run, self._open_client, arguments)
        return long_call

    def find(self, job_id: str) -> LongCall | KeptCall:
        """Of this server, or of another of its folder. Raises BadInput if the job_id is unknown."""
        call = self._calls.get(job_id) or read_kept(job_id)
        if call is None:
            raise BadInput(
                f"There is no job {brief(job_id)}: no server in this folder issued it, or it was forgotten.",
                'Call job with action "list" to see the jobs, or the tool again.',
            )
        return call

    def list_calls(self) -> CallList:
        """Every call that is running or remembered, those of other servers of this folder behind."""
        others = [
            ListedCall(
                **kept.model_dump(include={"job_id", "tool", "seconds"}),
                state=kept.state,
                doing=f"in another server, process {kept.server}" if kept.state == "running" else "",
            )
            for kept in all_kept()
            if kept.job_id not in self._calls
        ]
        jobs = (*(call.job for call in reversed(self._calls.values())), *others)
        running = sum(job.state == "running" for job in jobs)
        return CallList(
            summary=f"{running} running, {len(jobs) - running} ended.",
            next_step="Call job with a job_id for its result.",
            jobs=jobs,
        )

    async def wait(self, long_call: LongCall, report: Report, *, cancels: bool) -> BaseModel:
        """The call's answer once it has finished, or after this server's patience; heartbeats go to `report`.

        `cancels`: whether the call ends with a wait that is cancelled. Raises what the call raised.
        """
        try:
            with anyio.move_on_after(self._patience):
                while not long_call.done.is_set():
                    await report(*long_call.steps.shown(long_call.seconds), long_call.doing)
                    with anyio.move_on_after(HEARTBEAT_SECONDS):
                        await long_call.done.wait()
            if not long_call.done.is_set():
                long_call.keep()
        except anyio.get_cancelled_exc_class():
            if cancels:
                long_call.cancel()
            raise
        return long_call.answer()

    async def _open_client(self) -> "WorkerClient":
        """The one client, opened for the first call: importing it earlier would delay the server's start."""
        from pytorch_to_triton.jobs.client import open_client

        if self._worker is None:
            self._worker = await self._stack.enter_async_context(open_client())
        return self._worker

    def _forget_oldest(self) -> None:
        finished = [call for call in self._calls.values() if call.done.is_set()]
        for call in finished[: max(0, len(finished) - _KEPT)]:
            del self._calls[call.id]


@asynccontextmanager
async def open_long_calls(patience: float) -> AsyncIterator[LongCalls]:
    """A server's calls and its client to the worker; all end with the block."""
    async with AsyncExitStack() as stack, anyio.create_task_group() as group:
        try:
            yield LongCalls(stack, group, patience)
        finally:
            group.cancel_scope.cancel()
