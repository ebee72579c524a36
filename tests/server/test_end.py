"""However the server or a command ends, none of its processes is left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

SERVE = [sys.executable, "-m", "pytorch_to_triton_server", "serve"]
Process = subprocess.Popen[str]
PATIENCE = 120
"""Seconds that only a fault takes, on whatever machine."""


@contextmanager
def started(command: list[str], **variables: str) -> Iterator[Process]:
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
        # The process that started the tests may ignore the signal, and a child would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def send(server: Process, method: str, number: int | None, **parameters: Any) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": parameters}
    assert server.stdin is not None
    server.stdin.write(json.dumps(message if number is None else {**message, "id": number}) + "\n")
    server.stdin.flush()


def initialize(server: Process) -> dict[str, Any]:
    client = {"name": "test", "version": "0"}
    send(server, "initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    assert server.stdout is not None
    answer: dict[str, Any] = json.loads(server.stdout.readline())
    send(server, "notifications/initialized", None)
    return answer


def pid_in(marker: Path) -> int:
    """The spinning kernel's process, once it spins."""
    deadline = time.monotonic() + PATIENCE
    while not (marker.exists() and marker.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(marker.read_text())


def are_gone(processes: list[psutil.Process]) -> bool:
    _, left = psutil.wait_procs(processes, timeout=PATIENCE)
    return not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]


def close_stdin(server: Process) -> None:
    assert server.stdin is not None
    server.stdin.close()


def terminate(server: Process) -> None:
    server.send_signal(signal.SIGTERM)


def kill(server: Process) -> None:
    server.send_signal(signal.SIGKILL)


def interrupt(server: Process) -> None:
    server.send_signal(signal.SIGINT)


def test_initialize_is_answered_before_torch_is_loaded_or_any_process_started() -> None:
    with started(SERVE) as server:
        answer = initialize(server)
        assert answer["result"]["serverInfo"]["name"] == "pytorch-to-triton"
        process = psutil.Process(server.pid)
        assert not process.children()
        assert not [mapped.path for mapped in process.memory_maps() if "libtorch" in mapped.path]


@pytest.mark.parametrize(
    "end",
    [close_stdin, kill, *(pytest.param(e, marks=pytest.mark.corpora) for e in (interrupt, terminate))],
)
def test_a_server_with_a_running_call_leaves_no_process(
    right_kernel: Path, marker: Path, end: Callable[[Process], None]
) -> None:
    # Its worker never gets beyond this import; how jobs end with their fork server, tests/jobs shows.
    libraries = marker.with_name("libraries")
    libraries.mkdir()
    (libraries / "torch.py").write_text(
        f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(10_000)"
    )
    with started([*SERVE, "--allow-dir", str(right_kernel.parent)], PYTHONPATH=str(libraries)) as server:
        initialize(server)
        arguments = {"kernel": str(right_kernel), "device": "interpreter"}
        send(server, "tools/call", 2, name="validate", arguments=arguments)
        spinning = pid_in(marker)
        processes = psutil.Process(server.pid).children(recursive=True)
        assert spinning in [process.pid for process in processes]
        end(server)
        server.wait(PATIENCE)
        assert are_gone(processes)


def test_an_interrupted_command_ends_with_130_and_leaves_no_process(
    spinning_kernel: Path, marker: Path
) -> None:
    command = [sys.executable, "-m", "pytorch_to_triton_server", "validate", str(spinning_kernel)]
    with started([*command, "--device", "interpreter", "--json"]) as process:
        assert pid_in(marker)
        processes = psutil.Process(process.pid).children(recursive=True)
        interrupt(process)
        out, printed = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert "Traceback" not in printed
        assert json.loads(out)["error"]["kind"] == "interrupted"
        assert are_gone(processes)
