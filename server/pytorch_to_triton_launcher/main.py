"""Which way a launch takes: straight into a ready environment, or through making one.

An MCP client is answered in the server's place meanwhile. What the server says without running anything is
recorded in answers.json: who it is, its tools, prompts and resources. Anything else waits for the set-up a
while, then is answered with how far that is.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from pytorch_to_triton_launcher.environment import HINT, LAUNCH, SAYING, Problem, become, make, usable_python

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
EARLIER = "PYTORCH_TO_TRITON_EARLIER_LINES"
"""Tells the server the descriptor of a file with the lines that it has to read before those of stdin."""
PATIENCE_SECONDS = 45.0
"""How long a request waits: clients give up after 60 s."""
INTERNAL_ERROR = -32603
MISSING_REQUIREMENT, INTERRUPTED = 3, 130


def main(arguments: list[str]) -> int:
    """Run a command of the program. Returns only where it could not be started."""
    try:
        if arguments[:1] == ["serve"] and not {"--http", "--help", "-h"} & {*arguments}:
            serve(arguments)
        become(usable_python() or make(), arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Problem as problem:
        message, hint = problem.args
        print(f"error: {message}\n{hint}", file=sys.stderr)
        if "--json" in arguments:
            described = {"kind": "missing_requirement", "message": message, "hint": hint}
            print(json.dumps({"error": described}, indent=2))
    return MISSING_REQUIREMENT


def serve(arguments: list[str]) -> NoReturn:
    """Become the server: at once if there is an environment, else when it is made."""
    stand_in, python = StandIn(arguments), usable_python()
    with tempfile.TemporaryFile() as earlier:
        earlier.writelines(stand_in.greet() if python else stand_in.run())
        earlier.seek(0)
        os.set_inheritable(earlier.fileno(), True)
        python = python or usable_python() or sys.executable
        become(python, arguments, **{EARLIER: str(earlier.fileno())})


class StandIn:
    """One client's server while there is none; `arguments` are the server's."""

    def __init__(self, arguments: list[str]) -> None:
        recorded = Path(__file__).with_name("answers.json").read_text(encoding="utf-8")
        self._answers: dict[str, dict[str, Any]] = {**json.loads(recorded), "ping": {}}
        if any(word.startswith(("--toolsets", "--read-only")) for word in arguments):
            del self._answers["tools/list"]  # the server knows which of them it is to have
        self._held: list[tuple[float, bytes]] = []
        """Lines for the server; requests with the time at which they are answered at the latest."""
        self._stage = "looking for an environment"
        self._problem = ""
        """What else the set-up has said: of one that has failed, why."""
        self._has_failed = False
        self._began = time.monotonic()
        # Unbuffered, so that what follows a line is left for the server.
        self._client = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115

    def greet(self) -> list[bytes]:
        """Answer the client's first line if it is there: the server takes a second to start. As `run`."""
        if select.select([self._client], [], [], 0)[0] and (line := self._client.readline()):
            self._take(line)
        return [line for _, line in self._held]

    def run(self) -> list[bytes]:
        """The lines that the server has to read first, once it can be started. Ends with the client."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: sys.exit(128 + number))
        # Any command makes the environment. In a session of its own it can be ended with its installer.
        command, null, pipe = [sys.executable, str(LAUNCH), "--version"], subprocess.DEVNULL, subprocess.PIPE
        set_up = subprocess.Popen(
            command, stdin=null, stdout=null, stderr=pipe, start_new_session=True, bufsize=0
        )
        try:
            while set_up.poll() != 0:
                self._listen(set_up)
        finally:
            if set_up.poll() is None:
                os.killpg(set_up.pid, signal.SIGKILL)
        return [line for _, line in self._held]

    def _listen(self, set_up: subprocess.Popen[bytes]) -> None:
        """To the client and the set-up, for up to a second."""
        assert set_up.stderr is not None
        sources = [self._client] if self._has_failed else [self._client, set_up.stderr]
        ready, _, _ = select.select(sources, [], [], 1.0)
        if self._client in ready:
            self._take(self._client.readline() or sys.exit(0))
        if set_up.stderr in ready:
            line = set_up.stderr.readline().decode(errors="replace")
            if line.startswith(SAYING):
                self._stage = line.removeprefix(SAYING).strip()
            else:
                self._problem += line
            self._has_failed = not line and set_up.wait() != 0
        self._answer_those_due()

    def _take(self, line: bytes) -> None:
        """Answer a line of the client's, or hold it."""
        try:
            message = json.loads(line)
            number, method, parameters = message["id"], message["method"], message.get("params") or {}
            answer, asked = self._answers.get(method), parameters.get("protocolVersion")
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            self._held.append((math.inf, line))  # not a request: the server may make something of it
            return
        if answer is None:
            self._held.append((time.monotonic() + PATIENCE_SECONDS, line))
            return
        if method == "initialize":
            self._held.insert(0, (math.inf, line))  # the server has to know it, but not to answer it
            answer = {**answer, "protocolVersion": asked} if asked in HANDSHAKE_VERSIONS else answer
        _tell(number, result=answer)

    def _answer_those_due(self) -> None:
        """Say how far the set-up is to whoever has waited long enough; where it has failed, to everybody."""
        now = math.inf if self._has_failed else time.monotonic()
        due = [line for at, line in self._held if at <= now and at < math.inf]
        self._held = [(at, line) for at, line in self._held if line not in due]
        for message in map(json.loads, due):
            if message["method"] == "tools/call":
                content = [{"type": "text", "text": self._status()}]
                _tell(message["id"], result={"content": content, "isError": True, "resultType": "complete"})
            else:
                _tell(message["id"], error={"code": INTERNAL_ERROR, "message": self._status()})

    def _status(self) -> str:
        """How far the set-up is, or why it failed, and what to do."""
        if self._has_failed:
            return f"{self._problem}Then restart this MCP server."
        minutes = (time.monotonic() - self._began) / 60
        return (
            f"The environment is being set up: {self._stage}, {minutes:.0f} of about 5 "
            f"minutes. Call again, and the call waits for it. {HINT}"
        )


def _tell(number: Any, **answer: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)
