"""One connection: answers for the server while its environment is made, then hands it over.

The client's lines, the server's lines and the end of the set-up arrive in one queue and are worked on by one
thread, so that nothing is answered twice or out of order.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any, Protocol

from pytorch_to_triton_launcher import protocol
from pytorch_to_triton_launcher.environment import Environment
from pytorch_to_triton_launcher.making import Making
from pytorch_to_triton_launcher.problem import Problem
from pytorch_to_triton_launcher.status import Status

PROBE_ID = "pytorch-to-triton-launcher"
"""The id of the request that the launcher itself asks of the server."""
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
END_SECONDS = 10.0
AT_ONCE = ("initialize", "server/discover", "ping")
"""What the launcher answers even if there will be a server in a moment."""
Message = dict[str, Any]
Event = tuple[str, Any]


class Search(Protocol):
    """A search for an environment that goes on in a thread."""

    def must_make(self) -> bool:
        """Whether one is being made, as soon as that is known."""

    def result(self) -> Environment:
        """The environment, as soon as there is one. Raises Problem."""


class Session:
    """`arguments` are those of the server."""

    def __init__(self, search: Search, making: Making, arguments: list[str]) -> None:
        self._search = search
        self._making = making
        self._arguments = arguments
        self._status = Status(making)
        self._events: queue.Queue[Event] = queue.Queue()
        self._waiting: list[tuple[float, Message]] = []
        """Requests that are held back, with the times at which they are answered at the latest."""
        self._held: list[bytes] | None = []
        """Lines for the server, while there may soon be one; None while an environment is made for it."""
        self._handshake: list[Message] = []
        """What the client has sent and the server must hear as well."""
        self._streams: list[Message] = []
        """The open requests for changes, of the modern era."""
        self._server: subprocess.Popen[bytes] | None = None
        self._expected: list[Any] = []
        """The ids of answers that the client has had already, or never asked for."""
        self._relaying = False

    def run(self) -> int:
        """Serve until the client or the server ends. Returns the exit status."""
        self._heed_signals()
        try:
            threading.Thread(target=self._read, args=("client", 0), daemon=True).start()
            threading.Thread(target=self._look, daemon=True).start()
            return self._serve()
        finally:
            self._making.end()
            self._end_server()

    def _heed_signals(self) -> None:
        """End at a signal, even one that comes as the main thread is about to wait in its queue.

        Python calls the handler when the main thread goes on, which only an event makes it do.
        """
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _end)

        def rouse() -> None:
            os.read(woken, 1)
            self._events.put(("signalled", None))

        threading.Thread(target=rouse, daemon=True).start()

    def _serve(self) -> int:
        while True:
            self._answer_those_due()
            try:
                kind, content = self._events.get(timeout=self._until_next())
            except queue.Empty:
                continue
            if kind == "client":
                self._from_client(content)
            elif kind == "client ended":
                return 0
            elif kind == "making":
                self._let_go()
            elif kind == "found":
                self._start(content)
            elif kind == "failed":
                self._fail(content)
            elif kind == "server":
                self._from_server(content)
            elif kind == "server ended" and self._relaying:
                assert self._server is not None
                return self._server.wait()
            elif kind == "server ended":
                self._fail(
                    Problem("The server ended as it started.", "Its messages are in the client's log.")
                )

    # The client's side

    def _from_client(self, line: bytes) -> None:
        if self._relaying and not protocol.may_ask_status(line):
            self._tell_server(line)
            return
        message = protocol.parsed(line)
        if self._relaying and not (isinstance(message, dict) and protocol.asks_status(message)):
            self._tell_server(line)
            return
        if message is None:
            self._tell_client(protocol.error(None, protocol.PARSE_ERROR, "This is not readable JSON."))
        elif not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if not (isinstance(message, dict) and ("result" in message or "error" in message)):
                self._tell_client(protocol.error(None, protocol.INVALID_REQUEST, "This is not a request."))
        elif "id" not in message:
            self._note(message)
        elif self._held is not None and message["method"] not in AT_ONCE:
            self._held.append(line)
        elif message["method"] == "subscriptions/listen" and protocol.is_modern(message):
            self._streams.append(message)
            self._tell_client(protocol.acknowledged(message))
        else:
            self._request(message)

    def _request(self, message: Message) -> None:
        self._keep_handshake(message)
        seconds = protocol.wait_of(message)
        if seconds and self._status.now()["status"] == "running":
            self._waiting.append((time.monotonic() + seconds, message))
        else:
            self._tell_client(protocol.answer(message, self._status))

    def _keep_handshake(self, message: Message) -> None:
        if message["method"] == "initialize" or (protocol.is_modern(message) and not self._handshake):
            self._handshake = [message]

    def _let_go(self) -> None:
        """Treat what was held back: the server is there, or will not be for minutes, or never."""
        held, self._held = self._held or [], None
        for line in held:
            self._from_client(line)

    def _note(self, message: Message) -> None:
        """A notification: that of the handshake is for the server too; one may withdraw what waits."""
        if message["method"] == "notifications/initialized":
            self._handshake.append(message)
        elif message["method"] == "notifications/cancelled":
            parameters = message.get("params")
            number = parameters.get("requestId") if isinstance(parameters, dict) else None
            self._waiting = [(due, held) for due, held in self._waiting if held["id"] != number]
            self._streams = [held for held in self._streams if held["id"] != number]

    def _answer_those_due(self) -> None:
        now = time.monotonic()
        ended = self._status.is_ready or self._status.problem is not None
        due = [held for held in self._waiting if ended or held[0] <= now]
        self._waiting = [held for held in self._waiting if held not in due]
        for _, message in due:
            self._tell_client(protocol.answer(message, self._status))

    def _until_next(self) -> float | None:
        """Seconds until a request that is held back is due; None if there is none."""
        times = [due for due, _ in self._waiting]
        return max(min(times) - time.monotonic(), 0.0) if times else None

    # The server's side

    def _start(self, environment: Environment) -> None:
        """Start the server, and tell it what the client has said so far."""
        self._making.progress = replace(self._making.progress, stage="starting the server")
        self._held = self._held or []
        self._server = subprocess.Popen(
            environment.command(["serve", *self._arguments]),
            env=environment.variables(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._server.stdout is not None
        threading.Thread(
            target=self._read, args=("server", self._server.stdout.fileno()), daemon=True
        ).start()
        if not self._handshake:
            self._hand_over()
            return
        first = self._handshake[0]
        if protocol.is_modern(first):
            meta = {"_meta": first["params"]["_meta"]}
            first = {"jsonrpc": "2.0", "id": PROBE_ID, "method": "server/discover", "params": meta}
        self._expected = [first["id"]]
        self._tell_server(_line(first))

    def _from_server(self, line: bytes) -> None:
        if self._expected:
            message = protocol.parsed(line)
            if isinstance(message, dict) and self._was_expected(message):
                return
        self._write(line)

    def _was_expected(self, message: Message) -> bool:
        """Whether the client has had this message from the launcher, or never asked for it."""
        if message.get("method") == ACKNOWLEDGED:
            number = message["params"]["_meta"][protocol.SUBSCRIPTION_KEY]
        elif "method" in message:
            return False
        else:
            number = message.get("id")
        if number not in self._expected:
            return False
        self._expected.remove(number)
        if not self._relaying:
            self._hand_over()
        return True

    def _hand_over(self) -> None:
        """From here on both sides are passed on as they are."""
        self._relaying = self._status.is_ready = True
        for message in self._handshake[1:]:
            self._tell_server(_line(message))
        for message in self._streams:
            self._expected.append(message["id"])
            self._tell_server(_line(message))
        self._let_go()
        self._answer_those_due()
        initialized = bool(self._handshake) and not protocol.is_modern(self._handshake[0])
        for message in protocol.changes(self._streams, unasked=initialized):
            self._tell_client(message)

    def _fail(self, problem: Problem) -> None:
        self._status.problem = problem
        self._let_go()

    def _end_server(self) -> None:
        """Let the server end by itself, as its input ends, else end it."""
        if self._server is None:
            return
        assert self._server.stdin is not None
        with contextlib.suppress(OSError):  # it has ended
            self._server.stdin.close()
        try:
            self._server.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    # Threads and pipes

    def _look(self) -> None:
        try:
            if self._search.must_make():
                self._events.put(("making", None))
            self._events.put(("found", self._search.result()))
        except Problem as problem:
            self._events.put(("failed", problem))
        except Exception as error:  # else the client would wait for ever
            message = f"The set-up failed: {type(error).__name__}: {error}."
            self._events.put(("failed", Problem(message, "Please report this.")))

    def _read(self, kind: str, descriptor: int) -> None:
        for line in _lines(descriptor):
            self._events.put((kind, line))
        self._events.put((f"{kind} ended", None))

    def _tell_client(self, message: Message) -> None:
        self._write(_line(message))

    def _write(self, line: bytes) -> None:
        while line:
            line = line[os.write(1, line) :]

    def _tell_server(self, line: bytes) -> None:
        assert self._server is not None
        assert self._server.stdin is not None
        try:
            self._server.stdin.write(line)
            self._server.stdin.flush()
        except OSError:  # it has ended, which is an event of its own
            pass


def _line(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _lines(descriptor: int) -> Iterator[bytes]:
    """Whole lines, without Python's buffers: those cannot be left while a thread waits in them."""
    rest = b""
    while True:
        try:
            read = os.read(descriptor, 1 << 16)
        except OSError:
            return
        if not read:
            return
        *lines, rest = (rest + read).split(b"\n")
        yield from (line + b"\n" for line in lines if line.strip())


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
