"""Calls that may outlast a request: each runs in the server, and requests wait for it."""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel, ConfigDict

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton_server.fit import plain
from pytorch_to_triton_server.tool import Tool, ToolCall

if TYPE_CHECKING:
    from pytorch_to_triton.jobs.client import WorkerClient

HEARTBEAT_SECONDS = 1.0
_KEPT = 32
"""The number of finished calls to remember, in case an answer was lost in transit."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes the seconds that a call has run, None, and what it is doing."""


class PendingCall(BaseModel):
    """A call that is still running, or was cancelled."""

    model_config = ConfigDict(frozen=True)

    summary: str
    next_step: str
    job_id: str
    status: Literal["running", "cancelled"]


class LongCall:
    """One call in progress, and its result once it has finished."""

    def __init__(self, tool: Tool) -> None:
        self.id = secrets.token_hex(4)
        self.tool = tool
        self.done = anyio.Event()
        self.doing = "starting"
        """Its latest progress message."""
        self._scope = anyio.CancelScope()
        self._started = time.monotonic()
        self._result: BaseModel | None = None
        self._error: Exception | None = None

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return round(time.monotonic() - self._started, 1)

    async def run(
        self, open_client: "Callable[[], Awaitable[WorkerClient]]", arguments: dict[str, Any]
    ) -> None:
        """Make the call and keep its result or error; raises only when the server itself is shutting down."""
        from pytorch_to_triton.jobs.no_answer import cache_errors_refused

        try:
            with self._scope, cache_errors_refused():
                call = ToolCall(await open_client(), self, unattended=self.tool.read_only)
                self._result = await self.tool.function(call, **arguments)
        except Exception as error:
            self._error = error
        finally:
            self.done.set()

    def cancel(self) -> None:
        """End the call and kill its processes; does nothing to a finished call."""
        self._scope.cancel()

    def answer(self) -> BaseModel:
        """Its result, or that it is still running or was cancelled. Raises what the call raised."""
        if self._error is not None:
            raise self._error
        if self._result is not None:
            return self._result
        if self.done.is_set():
            return PendingCall(
                summary=f"{self.tool.name} was cancelled.",
                next_step=f"Call {self.tool.name} again to start over.",
                job_id=self.id,
                status="cancelled",
            )
        return PendingCall(
            summary=f"{self.tool.name} has been running for {self.seconds:.0f} s: {self.doing}.",
            next_step=f'Call job with job_id "{self.id}" to wait for the result or to cancel it.',
            job_id=self.id,
            status="running",
        )

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """As a ProgressListener: keep the message for the next heartbeat."""
        self.doing = plain(f"{message} ({done:g} of {total:g})" if total else message)

    async def item(self, result: dict[str, Any]) -> None:
        """As a ProgressListener: results are returned all together, at the end."""


class LongCalls:
    """The server's calls, by their job_id."""

    def __init__(self, stack: AsyncExitStack, group: TaskGroup, patience: float) -> None:
        self._stack = stack
        self._group = group
        self._worker: WorkerClient | None = None
        self._patience = patience
        """Seconds that one request waits."""
        self._calls: dict[str, LongCall] = {}

    def start(self, tool: Tool, arguments: dict[str, Any]) -> LongCall:
        """Start a call; it ends with the server."""
        self._forget_oldest()
        long_call = LongCall(tool)
        self._calls[long_call.id] = long_call
        self._group.start_soon(long_call.run, self._open_client, arguments)
        return long_call

    def find(self, job_id: str) -> LongCall:
        """Raises BadInput if the job_id is unknown."""
        if job_id not in self._calls:
            raise BadInput(
                f"There is no job {job_id!r}: this server never issued it, or has dropped its result.",
                "Call the tool again; a call that takes long returns a job_id.",
            )
        return self._calls[job_id]

    async def wait(self, long_call: LongCall, report: Report) -> BaseModel:
        """The call's answer once it has finished, or after this server's patience; heartbeats go to `report`.

        Cancelling the wait cancels the call. Raises what the call raised.
        """
        try:
            with anyio.move_on_after(self._patience):
                while not long_call.done.is_set():
                    await report(long_call.seconds, None, long_call.doing)
                    with anyio.move_on_after(HEARTBEAT_SECONDS):
                        await long_call.done.wait()
        except anyio.get_cancelled_exc_class():
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
        finished = [one for one in self._calls.values() if one.done.is_set()]
        for one in finished[: max(0, len(finished) - _KEPT)]:
            del self._calls[one.id]


@asynccontextmanager
async def open_long_calls(patience: float) -> AsyncIterator[LongCalls]:
    """A server's calls and its client to the worker; all end with the block."""
    async with AsyncExitStack() as stack, anyio.create_task_group() as group:
        try:
            yield LongCalls(stack, group, patience)
        finally:
            group.cancel_scope.cancel()
