"""Processes that take commands, one at a time, from the process that forked them."""

import json
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from ..failure import describe_failure
from ..fork_server import die_with_parent


class Lost(Exception):
    """The process ended, did not answer in time, or its command raised; the message says which."""


class WorkerProcess:
    """A forked process that follows commands as long as this process lives."""

    def __init__(self, pid: int, line: Connection) -> None:
        self._pid = pid
        self._line = line

    @property
    def alive(self) -> bool:
        """Whether it takes more commands: it does after an exception, not after an end or a time-out."""
        return not self._line.closed

    def ask(self, command: str, *, seconds: float, **arguments: Any) -> Any:
        """Send a command and wait for the answer. Raises Lost."""
        self.send(command, **arguments)
        return self.receive(seconds)

    def send(self, command: str, **arguments: Any) -> None:
        try:
            self._line.send_bytes(json.dumps({"do": command, "with": arguments}).encode())
        except OSError:
            raise Lost(self._why_it_ended()) from None

    def receive(self, seconds: float) -> Any:
        """The answer to the last command. Raises Lost; after a time-out the process is killed."""
        try:
            if not self._line.poll(seconds):
                self.end()
                raise Lost(f"not done within {seconds:g} s")
            answer = json.loads(self._line.recv_bytes())
        except (EOFError, OSError):
            raise Lost(self._why_it_ended()) from None
        if "failure" in answer:
            raise Lost(answer["failure"])
        return answer["answer"]

    def end(self) -> None:
        """Kill it, wherever it is."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        self._line.close()

    def _why_it_ended(self) -> str:
        self._line.close()
        with suppress(ChildProcessError):
            _, status = os.waitpid(self._pid, 0)
            code = os.waitstatus_to_exitcode(status)
            return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return "its process has ended"


def start_process(make: Callable[[], object]) -> WorkerProcess:
    """Fork a process that makes an object, and follows commands: its methods. No device was touched yet."""
    ours, theirs = Pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _follow(theirs, make, parent)
    theirs.close()
    return WorkerProcess(pid, ours)


def _follow(line: Connection, make: Callable[[], object], parent: int) -> NoReturn:
    """In the child: never return into the parent's frames."""
    try:
        die_with_parent(signal.SIGKILL)
        if os.getppid() == parent:
            commanded = make()
            while True:
                line.send_bytes(json.dumps(_done(commanded, json.loads(line.recv_bytes()))).encode())
    except EOFError:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _done(commanded: object, order: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"answer": getattr(commanded, order["do"])(**order["with"])}
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        failure = describe_failure(error, order["do"])
        return {"failure": f"{failure.type}: {failure.message}"}
