"""The only way to the worker: ask for a job, get its outcome, whatever happens to its process."""

import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.fork_server import ForkServer, ForkServerGone, RunningJob
from pytorch_to_triton.jobs.job_channel import JobChannel
from pytorch_to_triton.jobs.outcome import Messages
from pytorch_to_triton.jobs.progress import ProcessTime, ProgressListener, phases_of
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.schema.job import Job, Outcome, Runtime

_START_SECONDS = 180.0
"""How long a fork server may take to import torch and triton; a cold network disk takes minutes."""
_PROCESS_TIMES_KEPT = 200


class WorkerClient:
    """Starts one fork server for each runtime when it is first needed, and reuses it.

    Any number of jobs may run at once. The fork servers end with the thread that asked first: ask from one
    that lives as long as the client.
    """

    def __init__(self, folders: RunFolders) -> None:
        self.folders = folders
        self._opened = time.time()
        self._servers: dict[Runtime, ForkServer] = {}
        self._answers: dict[tuple[str, Runtime], Outcome] = {}
        self._asking: dict[tuple[str, Runtime], anyio.Lock] = {}
        self.process_times: deque[ProcessTime] = deque(maxlen=_PROCESS_TIMES_KEPT)
        """Of the last processes, in the order in which they ended; a long-lived client starts any number."""

    async def ask(
        self, job: Job, runtime: Runtime, *, seconds: float, listener: ProgressListener | None = None
    ) -> Outcome:
        """Do one job in a process of its own, for at most `seconds` from its start.

        What the job's code does is an outcome, never an exception: it may raise, crash or run out of time,
        and its items up to then are kept. Cancelling kills the job. Raises MissingRequirement where
        `runtime.python` does not run, or has no torch or triton.
        """
        async with self.open_channel(job, runtime, listener) as channel:
            return await channel.end(seconds=seconds)

    async def ask_once(self, job: Job, runtime: Runtime, *, seconds: float) -> Outcome:
        """As `ask`, but a job that has answered is not done again: for what does not change."""
        key = (job.model_dump_json(), runtime)
        async with self._asking.setdefault(key, anyio.Lock()):
            if key not in self._answers:
                outcome = await self.ask(job, runtime, seconds=seconds)
                if outcome.answer is None:
                    return outcome
                self._answers[key] = outcome
            return self._answers[key]

    @asynccontextmanager
    async def open_channel(
        self, job: Job, runtime: Runtime, listener: ProgressListener | None = None
    ) -> AsyncIterator[JobChannel]:
        """A job that takes requests for as long as the block lasts; then it is killed if it still runs.

        Raises MissingRequirement as `ask` does.
        """
        await anyio.to_thread.run_sync(self.folders.make_room)
        with self.folders.new(job, runtime) as folder:
            channel = JobChannel(folder, await self._start(folder, runtime), listener)
            began = time.time()
            try:
                yield channel
            finally:
                await channel.close()
                self._note(job.kind, runtime, began, channel.messages)

    def warm(self, runtime: Runtime) -> None:
        """Start the runtime's fork server now: its imports take seconds, in which other work goes on."""
        if runtime not in self._servers:
            self._servers[runtime] = ForkServer(runtime)

    async def close(self) -> None:
        """End every fork server with all its jobs; returns when they are gone."""
        while self._servers:
            _, server = self._servers.popitem()
            await server.close()

    async def _start(self, folder: Path, runtime: Runtime) -> RunningJob:
        """Hand the job to the runtime's fork server; to a fresh one where the old one has ended."""
        server = self._servers.get(runtime)
        if server is None:
            server = self._servers[runtime] = ForkServer(runtime)
        has_started = server.has_started
        try:
            with anyio.move_on_after(_START_SECONDS):
                running = await server.start(folder)
                if not has_started:
                    self._note("imports", runtime, server.began)
                return running
            why = f"it did not answer within {_START_SECONDS:g} s"
        except ForkServerGone:
            why = ""
        if self._servers.get(runtime) is server:
            del self._servers[runtime]
        await server.close()
        if server.has_started and not why:
            return await self._start(folder, runtime)
        raise _cannot_work(server, why)

    def _note(self, what: str, runtime: Runtime, began: float, messages: Messages | None = None) -> None:
        now = time.time()
        phases = phases_of(messages.marks, now) if messages else ()
        first = began - self._opened
        self.process_times.append(ProcessTime(what, runtime.interpreter, first, now - began, phases))


@asynccontextmanager
async def open_client(folders: RunFolders | None = None) -> AsyncIterator[WorkerClient]:
    """A client for as long as the block lasts; its run folders lie in the user's cache, or in `folders`."""
    worker = WorkerClient(folders or RunFolders(places.runs()))
    try:
        yield worker
    finally:
        await worker.close()


def _cannot_work(server: ForkServer, why: str) -> MissingRequirement:
    log = server.log_end
    printed = log.splitlines()[-1] if log else "it ended and printed nothing, as no Python does"
    output = f" Its output:\n{log}" if log else ""
    return MissingRequirement(
        f"{server.runtime.python} cannot run the worker: {why or printed}",
        f"Install torch and triton there, or name a Python (3.11 or newer) that has them.{output}",
    )
