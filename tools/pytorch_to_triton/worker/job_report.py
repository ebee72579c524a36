"""A job: it is read from `job.json`, its `work` is called, and its reply sent. On its way to its client
items, progress and phases go out, and requests come in.
"""

import importlib
import importlib.util
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

from . import wire
from .failure import describe_failure
from .runtime import enter_runtime
from .wire.as_json import KEY_BYTES, Framing, decoded, encoded

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


def perform(folder: Path, channel: Channel) -> bool:
    """Do the folder's job in this process; True if it answered, False if it raised."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    report = JobReport(folder, channel)
    try:
        work = load_work(job["kind"])
        hints = get_type_hints(work)
        arguments = {name: decoded(hints.get(name), value) for name, value in job["arguments"].items()}
        channel.send(wire.AnsweredReply(answer=work(report, **arguments)))
    except BaseException as error:  # a SystemExit of the user's code is a result like any other
        channel.send(wire.RaisedReply(failure=describe_failure(error, report.phase)))
        return False
    return True


def rerun(folder: Path) -> bool:
    """Do the folder's job in the foreground, in the runtime that it names, and print all that it said."""
    enter_runtime(json.loads((folder / "job.json").read_text(encoding="utf-8"))["runtime"])
    answered = perform(folder, FolderChannel(folder))
    print((folder / MESSAGES).read_text(encoding="utf-8"), end="")
    return answered


def modules_of(kind: str) -> list[str]:
    """The module in jobs/ of this kind; none where `kind` is the absolute path of a file."""
    return [] if os.path.isabs(kind) else [f"{__package__}.jobs.{kind}"]


def load_work(kind: str) -> Any:
    """The `work` of a module in jobs/, or of a file where `kind` is its absolute path."""
    if names := modules_of(kind):
        module = importlib.import_module(*names)
    else:
        spec = importlib.util.spec_from_file_location(f"{__package__}.jobs.{Path(kind).stem}", kind)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module.work
