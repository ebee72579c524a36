"""The way to one running job, a socket: requests go to it; items, progress and a reply come back."""

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio

from pytorch_to_triton.jobs.fork_server import RunningJob
from pytorch_to_triton.jobs.outcome import Messages, write_outcome
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Outcome, Status
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire.as_json import KEY_BYTES, Framing, Garbled, decoded, encoded

REQUESTS = "requests.jsonl"
"""In the run folder, one request a line, to do the job again."""
_CHUNK = 1 << 20
_RETRY_SECONDS = 0.1
"""After this long, what the job has not taken yet is sent once more."""

Item = dict[str, Any]


class Ended(Exception):
    """The job has ended, or took too long and was killed; `outcome` says how."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class JobChannel:
    """Requests to a running job, which answers them in their order, an item each.

    It reads what the job says only while somebody waits in one of its methods.
    """

    def __init__(self, folder: Path, running: RunningJob, listener: ProgressListener | None) -> None:
        self.folder = folder
        self.messages = Messages()
        self._running = running
        self._listener = listener
        key = os.urandom(KEY_BYTES)
        self._framing = Framing(key)
        self._unsent = bytearray(key)
        self._last_request_sent = False
        self._silent = False
        """Whether the job has closed its end: then only its own end is waited for."""
        self._received = 0
        self._abandoned = 0
        self._outcome: Outcome | None = None

    async def ask(self, request: Any, *, seconds: float) -> Item:
        """Send a request and wait for its answer. Raises Ended.

        Where the wait is cancelled, the answer is dropped when it comes: the next request gets its own.
        """
        with (self.folder / REQUESTS).open("a", encoding="utf-8") as kept:
            kept.write(encoded(request) + "\n")
        self._unsent += self._framing.pack(request)
        try:
            return await self.item(seconds=seconds)
        except anyio.get_cancelled_exc_class():
            self._abandoned += 1
            raise

    async def item(self, *, seconds: float) -> Item:
        """The next item; the job is killed where that takes longer. Raises Ended."""
        await self._exchange(self._arrived, seconds)
        killed = self._outcome is not None and self._outcome.status == "timed_out"
        if self._arrived() and not killed:  # what came as it was killed has no successor
            self._received += self._abandoned + 1
            self._abandoned = 0
            return self.messages.items[self._received - 1]
        assert self._outcome is not None
        raise Ended(self._outcome)

    async def end(self, *, seconds: float) -> Outcome:
        """Ask nothing more, and let the job finish; it is killed where that takes longer."""
        self._last_request_sent = True
        await self._exchange(lambda: False, seconds)
        assert self._outcome is not None
        return self._outcome

    async def close(self) -> None:
        """Kill the job if it still runs."""
        await self._running.kill()
        self._running.close()
        if self._outcome is None:
            write_outcome(self.messages.outcome(self.folder, "cancelled", ""))

    def _arrived(self) -> bool:
        return len(self.messages.items) > self._received + self._abandoned

    async def _exchange(self, is_done: Callable[[], bool], seconds: float) -> None:
        """Send and receive until it is done, or the job has ended; it is killed where that takes longer."""
        with anyio.move_on_after(seconds):
            try:
                while not is_done() and self._outcome is None:
                    if not await self._take_message():
                        await self._wait()
            except Garbled:
                await self._finish("crashed", "killed, because it wrote to the worker's own socket")
        if not is_done() and self._outcome is None:
            await self._finish("timed_out", f"not done within {seconds:g} s")

    async def _take_message(self) -> bool:
        """Take one message that has come; whether there was one. Raises Garbled."""
        received = self._framing.take()
        if received is None:
            return False
        message: wire.Message = decoded(wire.Message, received)
        self.messages.note(message)
        if self._listener and isinstance(message, wire.ItemMessage):
            await self._listener.item(message.item)
        elif self._listener and isinstance(message, wire.ProgressMessage):
            await self._listener.progress(message.done, message.total, message.message)
        return True

    async def _wait(self) -> None:
        """Send what can be sent, and wait until the job has written something, or ended."""
        self._send()
        with anyio.move_on_after(_RETRY_SECONDS if self._unsent else None):
            async with anyio.create_task_group() as either:
                either.start_soon(self._wait_for_end, either.cancel_scope)
                if not self._silent:
                    await anyio.wait_readable(self._running.channel)
                    either.cancel_scope.cancel()
        if self._running.end is not None:
            await self._finish(*self._running.end)
        else:
            self._receive()

    async def _wait_for_end(self, either: anyio.CancelScope) -> None:
        await self._running.ended()
        either.cancel()

    def _send(self) -> None:
        """Send as much as the job's end has room for."""
        with suppress(BlockingIOError, ConnectionError):
            while self._unsent:
                del self._unsent[: self._running.channel.send(self._unsent)]
            if self._last_request_sent:
                self._running.channel.shutdown(socket.SHUT_WR)

    def _receive(self) -> bool:
        """Read what has come; whether anything has."""
        try:
            data = self._running.channel.recv(_CHUNK)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        self._framing.feed(data)
        self._silent = not data
        return bool(data)

    async def _finish(self, status: Status, detail: str) -> None:
        """Kill what is left of the job, and read what it has left behind."""
        await self._running.kill()
        with suppress(Garbled):
            while await self._take_message() or self._receive():
                pass
        self._outcome = self.messages.outcome(self.folder, status, detail)
        write_outcome(self._outcome)
