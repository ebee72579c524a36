"""A process that has imported torch and triton, and forks one child a job.

Its orders come through a socket on stdin. Each message is the path of a run folder and brings two sockets.
One is the job's line: the server writes a StartedMessage and an EndedMessage (wire.py) on it, and whoever
holds its other end kills the job by closing that. The second one is the job's way to its client. When the
socket on stdin closes, everything ends.

It stays on one thread and never runs a tensor operation: a child forked after one may hang. The jobs die with
that thread (PR_SET_PDEATHSIG), so with this process.
"""

import ctypes
import faulthandler
import gc
import importlib
import io
import json
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from . import wire
from .job_report import ClientChannel, modules_of, perform
from .runtime import enter_runtime, interpreting
from .wire.as_json import encoded

_PR_SET_PDEATHSIG = 1
_MESSAGE_BYTES = 65536
_LOOK_MS = 500
"""Between two looks at the memory that jobs hold."""


def serve(runtime: dict[str, Any]) -> None:
    """Import for `runtime`, then do the jobs that come through the socket on stdin until it closes."""
    # The imports take seconds in which nobody reads the socket: until then, the kernel ends this process.
    die_with_parent(signal.SIGKILL)
    control = socket.socket(fileno=os.dup(0))
    _point_at(0, os.devnull, os.O_RDONLY)
    if _is_closed(control):  # the client ended before the line above
        return
    with _for_good():
        enter_runtime(runtime)
    sys.stdout.flush()
    server = _Server(control, memory_limit(runtime.get("memory_gib")))
    signal.signal(signal.SIGTERM, lambda *_: server.end())
    die_with_parent(signal.SIGTERM)
    try:
        while server.step():
            pass
    finally:
        server.end_all()


class _Server:
    def __init__(self, control: socket.socket, limit: int) -> None:
        self._control = control
        self._lines: dict[int, socket.socket] = {}
        """The line of each job, by the process id of its child."""
        self._killed: set[int] = set()
        self._stopped: dict[int, str] = {}
        """Why the server has stopped a job."""
        self._limit = limit
        self._wake, self._wake_writer = socket.socketpair()
        self._wake.setblocking(False)
        self._wake_writer.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_writer.fileno(), warn_on_full_buffer=False)

    def step(self) -> bool:
        """Wait for an event and handle it; False when the client has closed the socket."""
        waiting = select.poll()
        watched = {pid: line for pid, line in self._lines.items() if pid not in self._killed}
        for end in (self._control, self._wake, *watched.values()):
            waiting.register(end, select.POLLIN)
        ready = {file for file, _ in waiting.poll(_LOOK_MS if watched else None)}
        for pid, line in watched.items():
            if line.fileno() in ready:
                _kill_group(pid)
                self._killed.add(pid)
        if self._wake.fileno() in ready:
            self._wake.recv(_MESSAGE_BYTES)
        self._reap()
        if not ready:
            self._stop_greedy(watched)
        return self._accept() if self._control.fileno() in ready else True

    def _stop_greedy(self, pids: Iterable[int]) -> None:
        """Kill the jobs that hold more memory than they may."""
        for pid, held in held_by(pids).items():
            if held > self._limit and pid in self._lines:
                self._stopped[pid] = why_stopped(held, self._limit)
                _kill_group(pid)

    def end_all(self) -> None:
        """Kill every child with its whole process group, and wait until they are gone."""
        for pid in self._lines:
            _kill_group(pid)
        for pid in self._lines:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)

    def end(self) -> NoReturn:
        """End all and leave at once: a handler that raised could interrupt `end_all` itself."""
        self.end_all()
        _flush()
        os._exit(0)

    def _accept(self) -> bool:
        message, files, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, 2)
        if not message:
            return False
        line, channel = (socket.socket(fileno=file) for file in files)
        folder = Path(os.fsdecode(message))
        _import_for(folder)
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_job(folder, line, channel, server)
        channel.close()
        _lead_group(pid)
        self._lines[pid] = line
        _send(line, wire.StartedMessage(pid=pid))
        return True

    def _reap(self) -> None:
        for pid, line in list(self._lines.items()):
            # WNOWAIT: while the child is not collected, no other process can get its number or its group's.
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            _kill_group(pid)
            _, status = os.waitpid(pid, 0)
            _send(line, wire.EndedMessage(status=status, stopped=self._stopped.pop(pid, "")))
            line.close()
            del self._lines[pid]
            self._killed.discard(pid)

    def _become_job(self, folder: Path, line: socket.socket, channel: socket.socket, server: int) -> NoReturn:
        """In the child: leave the server behind, do the job, and never unwind into the server's frames."""
        status = 1
        try:
            die_with_parent(signal.SIGKILL)
            if os.getppid() != server:
                os._exit(status)
            _lead_group(0)
            self._close_inherited(line)
            _write_to(folder / "log.txt")
            # The signal says enough about a crash; a core dump of gigabytes would only take time.
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
            perform(folder, ClientChannel(channel))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            try:
                _flush()
            finally:
                os._exit(status)

    def _close_inherited(self, line: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for end in (self._control, self._wake, self._wake_writer, line, *self._lines.values()):
            end.close()


def _import_for(folder: Path) -> None:
    """Import what the job needs, for later jobs too; the job itself reports what cannot be imported.

    Its own module is among that where no GPU is used: some of what they import asks CUDA for its devices.
    """
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    needs = [*job["needs"], *(modules_of(job["kind"]) if interpreting() else ())]
    missing = [name for name in needs if name not in sys.modules]
    if missing:
        with _for_good():
            for name in missing:
                with suppress(ImportError):
                    importlib.import_module(name)


@contextmanager
def _for_good() -> Iterator[None]:
    """What is made inside stays: nothing looks for garbage in it, here or in a job."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _write_to(log: Path) -> None:
    """Send what this process and its children print, and where it crashes, to `log`."""
    for file in (1, 2):
        _point_at(file, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        stream.reconfigure(line_buffering=True)
    faulthandler.enable()


def _flush() -> None:
    """Flush the buffers of Python and of C code."""
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)


def die_with_parent(how: signal.Signals) -> None:
    """Let the kernel send signal `how` to this process when the thread that forked it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(how), 0, 0, 0)


def _is_closed(control: socket.socket) -> bool:
    watched = select.poll()
    watched.register(control, select.POLLHUP)
    return bool(watched.poll(0))


def _lead_group(pid: int) -> None:
    """Make the child the leader of a group of its own; both sides of the fork do it, one comes first."""
    with suppress(ProcessLookupError, PermissionError):
        os.setpgid(pid, 0)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _send(line: socket.socket, message: wire.ServerMessage) -> None:
    with suppress(ConnectionError):
        line.send(encoded(message).encode())


def _point_at(file: int, path: str | Path, flags: int) -> None:
    opened = os.open(path, flags, 0o644)
    os.dup2(opened, file)
    os.close(opened)


VARIABLE = "PYTORCH_TO_TRITON_MEMORY_GIB"
"""Sets the limit of one job.

A process that takes all there is makes the kernel kill whichever process it likes, the user's editor among
them. Address space says nothing here: CUDA reserves far more than it uses.
"""
_SHARE = 0.8
"""Of the machine's memory, or of the container's."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def memory_limit(gib: float | None) -> int:
    """Bytes that the processes of one job may hold; `gib` is what the client says."""
    if gib is not None:
        return int(gib * 2**30)
    setting = os.environ.get(VARIABLE, "")
    with suppress(ValueError):
        if float(setting) > 0:
            return int(float(setting) * 2**30)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        machine = min(machine, int(_CGROUP.read_text()))
    return int(machine * _SHARE)


def held_by(leaders: Iterable[int]) -> dict[int, int]:
    """Bytes that each of these process groups holds: memory of its own, not of files."""
    held = dict.fromkeys(leaders, 0)
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with suppress(OSError, ValueError):
                group = os.getpgid(int(entry.name))
                if group in held:
                    held[group] += own_memory(Path(entry.path, "status").read_text())
    return held


def own_memory(status: str) -> int:
    """Bytes of anonymous and shared memory, from /proc/PID/status."""
    lines = (line.split() for line in status.splitlines())
    return sum(int(line[1]) << 10 for line in lines if line and line[0] in ("RssAnon:", "RssShmem:"))


def why_stopped(held: int, limit: int) -> str:
    """For the outcome of the job."""
    return (
        f"stopped: it held {held / 2**30:.1f} GiB of memory, over the limit of {limit / 2**30:.1f} GiB "
        f"({VARIABLE} sets it)"
    )
