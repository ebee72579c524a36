"""However the process that holds the client ends, nothing that it started outlives it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.jobs.processes import is_gone

PARENT = Path(__file__).parent / "spinning_parent.py"
Parent = subprocess.Popen[str]
PATIENCE = 120
"""Seconds that only a fault takes, on whatever machine."""


def close_stdin(parent: Parent) -> None:
    assert parent.stdin is not None
    parent.stdin.close()


def terminate(parent: Parent) -> None:
    parent.send_signal(signal.SIGTERM)


def kill(parent: Parent) -> None:
    parent.send_signal(signal.SIGKILL)


def interrupt(parent: Parent) -> None:
    parent.send_signal(signal.SIGINT)


@contextmanager
def spinning_parent(cache: Path, *ways: str, **environment: str) -> Iterator[Parent]:
    with subprocess.Popen(
        [sys.executable, str(PARENT), *ways],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={"PYTORCH_TO_TRITON_CACHE": str(cache), **environment},
        # Whatever started the tests may ignore the signal, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as parent:
        try:
            yield parent
        finally:
            parent.kill()


def are_gone(processes: list[psutil.Process]) -> bool:
    """Whether all have ended before the deadline."""
    deadline = time.monotonic() + PATIENCE
    left = processes
    while left and time.monotonic() < deadline:
        left = [process for process in left if not is_gone(process.pid)]
        time.sleep(0.01)
    return not left


@pytest.mark.parametrize("end", [close_stdin, terminate, kill, interrupt])
def test_spinning_jobs_end_with_the_process_that_asked_for_them(
    tmp_path: Path, empty_libraries: Path, end: Callable[[Parent], None]
) -> None:
    ways = ("spin_in_python", "spin_in_native_code", "spin_with_a_child")
    with spinning_parent(tmp_path, *ways, PYTHONPATH=str(empty_libraries)) as parent:
        assert parent.stdout is not None
        for _ in ways:
            assert json.loads(parent.stdout.readline())["pid"]
        processes = psutil.Process(parent.pid).children(recursive=True)
        assert len(processes) >= 1 + len(ways)
        end(parent)
        parent.wait(PATIENCE)
        assert are_gone(processes)


def test_a_fork_server_that_still_imports_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    marker = tmp_path / "importing"
    (tmp_path / "torch.py").write_text(
        f"import ctypes; open({str(marker)!r}, 'w').close(); ctypes.PyDLL(None).sleep(10_000)"
    )
    with spinning_parent(tmp_path, "spin_in_python", PYTHONPATH=str(tmp_path)) as parent:
        while not marker.exists():
            time.sleep(0.01)
        servers = psutil.Process(parent.pid).children()
        assert servers
        kill(parent)
        assert are_gone(servers)


def test_signals_that_come_while_a_fork_server_ends_leave_nothing_behind(
    tmp_path: Path, empty_libraries: Path
) -> None:
    with spinning_parent(tmp_path, "spin_with_a_child", PYTHONPATH=str(empty_libraries)) as parent:
        assert parent.stdout is not None
        assert json.loads(parent.stdout.readline())["pid"]
        (server,) = psutil.Process(parent.pid).children()
        processes = [server, *server.children(recursive=True)]
        kill(parent)
        while not is_gone(server.pid):
            with suppress(psutil.NoSuchProcess):
                server.terminate()
        assert are_gone(processes)
