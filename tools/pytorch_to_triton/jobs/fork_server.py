"""The client's side of a fork server: start it without this environment's secrets, hand it jobs, end it."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
import anyio.to_thread

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.outcome import describe_status, text_end
from pytorch_to_triton.schema.job import Runtime, Status
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire.as_json import decoded

_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|(API|ACCESS|PRIVATE|ACCOUNT|SIGNING)_?KEY|_KEY$|AUTH|"
    r"^(SSH|GPG)_|^GIT_ASKPASS$|_DSN$|DATABASE_URL|CONNECTION_STRING",
    re.IGNORECASE,
)
_END_SECONDS = 15.0
"""How long a killed process may take to be gone; with a device busy, it takes a while."""
_MESSAGE_BYTES = 4096


def job_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Every variable but those whose name says that they hold a secret or lead to an agent that does."""
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}


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
        line, line_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel, channel_end = socket.socketpair()
        job = RunningJob(line, channel)
        try:
            with line_end, channel_end:
                self._send(folder, line_end, channel_end)
            await job.started()
        except BaseException:
            job.close()
            raise
        self.has_started = True
        return job

    def _send(self, folder: Path, *ends: socket.socket) -> None:
        try:
            socket.send_fds(self._control, [os.fsencode(folder)], [end.fileno() for end in ends])
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
    """The line to one job, on which its fork server says how it ended, and the socket to the job itself.

    Closing them kills the job.
    """

    def __init__(self, line: socket.socket, channel: socket.socket) -> None:
        self.channel = channel
        self.end: tuple[Status, str] | None = None
        """How it ended, should it have left no reply; None as long as nobody has seen its end."""
        self._line = line
        for end in (line, channel):
            end.setblocking(False)

    async def started(self) -> None:
        """Wait until the child runs. Raises ForkServerGone."""
        if await self._next() is None:
            raise ForkServerGone

    async def ended(self) -> None:
        """Wait until the child has ended."""
        if self.end is None:
            message = await self._next()
            if message is None:
                self.end = "lost", "the process that the job was forked from has ended"
            elif isinstance(message, wire.EndedMessage):
                self.end = "crashed", message.stopped or describe_status(message.status)

    async def kill(self) -> None:
        """Kill the job's process group; returns when its process is gone."""
        self._line.shutdown(socket.SHUT_WR)
        with anyio.move_on_after(_END_SECONDS, shield=True):
            await self.ended()

    def close(self) -> None:
        self._line.close()
        self.channel.close()

    async def _next(self) -> wire.ServerMessage | None:
        """The fork server's next message; None where it has ended."""
        await anyio.wait_readable(self._line)
        try:
            data = self._line.recv(_MESSAGE_BYTES)
        except ConnectionError:
            data = b""
        return decoded(wire.ServerMessage, json.loads(data)) if data else None
