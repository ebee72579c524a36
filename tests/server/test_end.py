"""However the server or a command ends, none of its processes is left."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from .launched import conversation

SERVE = [sys.executable, "-m", "pytorch_to_triton_server", "serve"]
PATIENCE = 120
"""Seconds that only a fault takes, on whatever machine."""


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


def end(server: subprocess.Popen[str], by: signal.Signals | None) -> None:
    """By a signal; None: by the end of its stdin."""
    if by is not None:
        server.send_signal(by)
    else:
        assert server.stdin is not None
        server.stdin.close()


def test_initialize_is_answered_before_torch_is_loaded_or_any_process_started() -> None:
    with conversation(SERVE, dict(os.environ)) as client:
        answer = client.shake_hands()
        assert answer["result"]["serverInfo"]["name"] == "pytorch-to-triton"
        process = psutil.Process(client.process.pid)
        assert not process.children()
        assert not [mapped.path for mapped in process.memory_maps() if "libtorch" in mapped.path]


@pytest.mark.parametrize(
    "by",
    [
        None,
        signal.SIGKILL,
        *(pytest.param(by, marks=pytest.mark.corpora) for by in (signal.SIGINT, signal.SIGTERM)),
    ],
)
def test_a_server_with_a_running_call_leaves_no_process(
    right_kernel: Path, marker: Path, by: signal.Signals | None
) -> None:
    # Its worker never gets beyond this import; how jobs end with their fork server, tests/jobs shows.
    libraries = marker.with_name("libraries")
    libraries.mkdir()
    (libraries / "torch.py").write_text(
        f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep(10_000)"
    )
    command = [*SERVE, "--allow-dir", str(right_kernel.parent)]
    with conversation(command, {**os.environ, "PYTHONPATH": str(libraries)}) as client:
        client.shake_hands()
        arguments = {"kernel": str(right_kernel), "device": "interpreter"}
        client.send(id=2, method="tools/call", params={"name": "validate", "arguments": arguments})
        spinning = pid_in(marker)
        processes = psutil.Process(client.process.pid).children(recursive=True)
        assert spinning in [process.pid for process in processes]
        end(client.process, by)
        client.process.wait(PATIENCE)
        assert are_gone(processes)


def test_an_interrupted_command_ends_with_130_and_leaves_no_process(
    spinning_kernel: Path, marker: Path
) -> None:
    command = [sys.executable, "-m", "pytorch_to_triton_server", "validate", str(spinning_kernel)]
    with conversation([*command, "--device", "interpreter", "--json"], dict(os.environ)) as client:
        process = client.process
        assert pid_in(marker)
        processes = psutil.Process(process.pid).children(recursive=True)
        end(process, signal.SIGINT)
        out, printed = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert "Traceback" not in printed
        error = json.loads(out)["error"]
        assert error["kind"] == "interrupted"
        assert re.fullmatch(r"The command was interrupted \(0 of \d+, .+=.+\)\.", error["message"])
        assert are_gone(processes)
