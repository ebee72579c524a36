"""Calls that may outlast a request: each is a job of the server, which a request waits for."""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel, ConfigDict

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.catalogue import Call, Tool
from pytorch_to_triton_server.fit import plain

if TYPE_CHECKING:
    from pytorch_to_triton.jobs.client import WorkerClient

HEARTBEAT_SECONDS = 1.0
_KEPT = 32
"""So many ended jobs are remembered, in case their answer got lost on its way."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Told the seconds that a job has run, None, and what it is doing."""


class Pending(BaseModel):
    """A call that goes on, or was cancelled."""

    model_config = ConfigDict(frozen=True)

    summary: str
    next_step: str
    job_id: str
    status: Literal["running", "cancelled"]


class Job:
    """One call under way, and its result once it has ended."""

    def __init__(self, tool: Tool) -> None:
        self.id = secrets.token_hex(4)
        self.tool = tool
        self.done = anyio.Event()
        self._scope = anyio.CancelScope()
        self._started = time.monotonic()
        self._doing = "starting"
        self._result: BaseModel | None = None
        self._error: Exception | None = None

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return round(time.monotonic() - self._started, 1)

    @property
    def doing(self) -> str:
        """What it is doing, in words."""
        return self._doing

    async def run(
        self, open_client: "Callable[[], Awaitable[WorkerClient]]", arguments: dict[str, Any]
    ) -> None:
        """Do the call. How it ends is kept for whoever waits; only the server's own end is raised."""
        from pytorch_to_triton.jobs.no_answer import cache_errors_refused

        try:
            with self._scope, cache_errors_refused():
                call = Call(await open_client(), self, unattended=self.tool.read_only)
                self._result = await self.tool.function(call, **arguments)
        except Exception as error:
            self._error = error
        finally:
            self.done.set()

    def cancel(self) -> None:
        """Kill its processes and end it; an ended job stays as it is."""
        self._scope.cancel()

    def answer(self) -> BaseModel:
        """Its result, or that it is still running or was cancelled. Raises what the call raised."""
        if self._error is not None:
            raise self._error
        if self._result is not None:
            return self._result
        if self.done.is_set():
            return Pending(
                summary=f"{self.tool.name} was cancelled.",
                next_step=f"Call {self.tool.name} again to start anew.",
                job_id=self.id,
                status="cancelled",
            )
        return Pending(
            summary=f"{self.tool.name} has run for {self.seconds:.0f} s: {self._doing}.",
            next_step=f'Call job with job_id "{self.id}" to wait for the result or to cancel.',
            job_id=self.id,
            status="running",
        )

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """As a Watch: keep what is going on for the next heartbeat."""
        self._doing = plain(f"{message} ({done:g} of {total:g})" if total else message)

    async def item(self, result: dict[str, Any]) -> None:
        """As a Watch: results come whole, at the end."""


class Jobs:
    """The server's jobs, by the handle that each was given."""

    def __init__(self, stack: AsyncExitStack, group: TaskGroup, patience: float) -> None:
        self._stack = stack
        self._group = group
        self._worker: WorkerClient | None = None
        self._patience = patience
        """Seconds that one request waits."""
        self._jobs: dict[str, Job] = {}

    def start(self, tool: Tool, arguments: dict[str, Any]) -> Job:
        """Start a call; it ends with the server."""
        self._forget_oldest()
        job = Job(tool)
        self._jobs[job.id] = job
        self._group.start_soon(job.run, self._open_client, arguments)
        return job

    def find(self, job_id: str) -> Job:
        """Raises BadInput where the handle is unknown."""
        if job_id not in self._jobs:
            raise BadInput(
                f"There is no job {job_id!r}: this server never gave out that handle, or has forgotten it.",
                "Call the tool again; its answer names a job_id when it takes long.",
            )
        return self._jobs[job_id]

    async def wait(self, job: Job, report: Report) -> BaseModel:
        """The job's answer once it has ended, or after this server's patience; heartbeats go to `report`.

        Cancelling the wait kills the job. Raises what the call raised.
        """
        try:
            with anyio.move_on_after(self._patience):
                while not job.done.is_set():
                    await report(job.seconds, None, job.doing)
                    with anyio.move_on_after(HEARTBEAT_SECONDS):
                        await job.done.wait()
        except anyio.get_cancelled_exc_class():
            job.cancel()
            raise
        return job.answer()

    async def _open_client(self) -> "WorkerClient":
        """The one client, opened with the first job: its modules would hold up the server's start."""
        from pytorch_to_triton.jobs.client import open_client

        if self._worker is None:
            self._worker = await self._stack.enter_async_context(open_client())
        return self._worker

    def _forget_oldest(self) -> None:
        ended = [job for job in self._jobs.values() if job.done.is_set()]
        for job in ended[: max(0, len(ended) - _KEPT)]:
            del self._jobs[job.id]


@asynccontextmanager
async def open_jobs(patience: float) -> AsyncIterator[Jobs]:
    """A server's jobs and its client to the worker; all end with the block."""
    async with AsyncExitStack() as stack, anyio.create_task_group() as group:
        try:
            yield Jobs(stack, group, patience)
        finally:
            group.cancel_scope.cancel()
