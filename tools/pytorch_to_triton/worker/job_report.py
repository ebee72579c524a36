"""A job's way to its client: items, progress, phases and a reply go out, requests come in."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import wire
from .wire.as_json import decoded, encoded
from .wire.framing import KEY_BYTES, Framing

REQUESTS, MESSAGES = "requests.jsonl", "messages.jsonl"
"""In the run folder, an object a line: what the job was asked; what it said where it has no client."""
_CHUNK = 1 << 16


class ClientChannel:
    """The job's end of the socket that it shares with its client.

    A message that was sent arrives whatever happens to the process afterwards.
    """

    def __init__(self, line: socket.socket) -> None:
        line.set_inheritable(False)
        self._line = line
        self._framing = Framing(line.recv(KEY_BYTES, socket.MSG_WAITALL))
        self._turn = threading.Lock()

    def send(self, message: wire.Message) -> None:
        """Send one message. Raises ValueError for NaN and infinities."""
        data = self._framing.pack(message)
        with self._turn:
            self._line.sendall(data)

    def requests(self) -> Iterator[Any]:
        """Each request as it comes, until there are no more."""
        while data := self._line.recv(_CHUNK):
            self._framing.feed(data)
            while (request := self._framing.take()) is not None:
                yield request


class FolderChannel:
    """For a job that has no client: its messages go to a file, and its requests come from one."""

    def __init__(self, folder: Path) -> None:
        self._requests = folder / REQUESTS
        self._file = os.open(folder / MESSAGES, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def send(self, message: wire.Message) -> None:
        os.write(self._file, (encoded(message) + "\n").encode())

    def requests(self) -> Iterator[Any]:
        lines = self._requests.read_text(encoding="utf-8") if self._requests.exists() else ""
        return map(json.loads, lines.splitlines())


Channel = ClientChannel | FolderChannel


class JobReport:
    """What a job reports on its way, and where it takes its requests from."""

    def __init__(self, folder: Path, channel: Channel) -> None:
        self.folder = folder
        """The run folder; a job may leave files of its own in it."""
        self.phase = ""
        """What `during` named last."""
        self.channel = channel

    def item(self, item: Any) -> None:
        """Hand over one result, of a type of wire/. Raises ValueError for NaN and infinities."""
        self.channel.send(wire.ItemMessage(item=item))

    def progress(self, done: float, total: float | None, message: str) -> None:
        """Report `done` of `total`, in units of the job's own; `total` None where it is not known."""
        self.channel.send(wire.ProgressMessage(done=done, total=total, message=message))

    def during(self, phase: str) -> None:
        """Name what the job does from here on; a failure, a crash and a time-out will mention it."""
        self.phase = phase
        self.channel.send(wire.PhaseMessage(phase=phase, at=time.time()))

    def requests(self, kind: Any = Any) -> Iterator[Any]:
        """Each request as it comes, a `kind`, until there are no more; without a client, those of before."""
        return (decoded(kind, request) for request in self.channel.requests())
