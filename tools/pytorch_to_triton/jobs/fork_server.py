"""The client's side of a fork server: start it, hand it jobs, end it."""

import json
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.environment import job_environment
from pytorch_to_triton.jobs.outcome import text_end
from pytorch_to_triton.schema.job import Runtime

if TYPE_CHECKING:
    from pytorch_to_triton.worker import wire

_END_SECONDS = 15.0
"""How long a killed process may take to be gone; with a device busy, it takes a while."""
_MESSAGE_BYTES = 4096


class ForkServerGone(Exception):
    """The fork server has ended, and took the job with it or never took it."""


class ForkServer:
    """One process that has imported torch and triton for `runtime`, and forks one child a job.

    It ends with this object's socket, and with the thread that made this object: make it on a lasting one.
    Raises MissingRequirement where the runtime's Python cannot be started.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.began = time.time()
        self.has_started = False
        """Whether it has ever taken a job: its imports work."""
        self.log_end = ""
        """The end of what it printed; set by `close`."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `close`)
        self._control, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        bootstrap = str(places.WORKER / "bootstrap.py")
        try:
            self._process = subprocess.Popen(
                [runtime.python, "-P", bootstrap, "--serve", runtime.model_dump_json()],
                stdin=child_end.fileno(),
                stdout=self._log,
                stderr=self._log,
                env=job_environment(),
                start_new_session=True,
            )
        except OSError as error:
            self._control.close()
            self._log.close()
            raise MissingRequirement(
                f"{runtime.python} cannot be started: {error.strerror}.",
                "Name a Python that has torch and triton.",
            ) from error
        finally:
            child_end.close()

    async def start(self, folder: Path) -> "RunningJob":
        """Fork a child for the job in `folder`. Raises ForkServerGone."""
        line, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        job = RunningJob(line)
        try:
            with child_end:
                self._send(folder, child_end)
            await job.started()
        except BaseException:
            job.close()
            raise
        self.has_started = True
        return job

    def _send(self, folder: Path, line: socket.socket) -> None:
        try:
            socket.send_fds(self._control, [os.fsencode(folder)], [line.fileno()])
        except ConnectionError as error:
            raise ForkServerGone from error

    async def close(self) -> None:
        """End it with all its jobs; returns when they are gone. May be called again."""
        self._control.close()
        if not self.has_started:
            self._process.kill()
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(self._process.wait, _END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if not self._log.closed:
            self.log_end = text_end(self._log).strip()
            self._log.close()


class RunningJob:
    """The line to one job. Closing it kills the job."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._line.setblocking(False)

    async def started(self) -> int:
        """The child's process id. Raises ForkServerGone."""
        message = await self._next()
        assert message["event"] == "started"
        return message["pid"]

    async def ended(self) -> int:
        """The child's wait status, once it has ended. Raises ForkServerGone."""
        message = await self._next()
        assert message["event"] == "ended"
        return message["status"]

    async def kill(self) -> None:
        """Kill the job's process group; returns when its process is gone."""
        self._line.shutdown(socket.SHUT_WR)
        with anyio.move_on_after(_END_SECONDS, shield=True):
            try:
                await self.ended()
            except ForkServerGone:
                return

    def close(self) -> None:
        self._line.close()

    async def _next(self) -> "wire.ServerMessage":
        await anyio.wait_readable(self._line)
        try:
            data = self._line.recv(_MESSAGE_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            raise ForkServerGone
        message: wire.ServerMessage = json.loads(data)
        return message
