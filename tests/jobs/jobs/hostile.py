"""Jobs that go wrong, each after it said who it is."""

import ctypes
import json
import math
import os
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import torch


def work(report: Any, how: str) -> dict[str, Any]:
    report.item({"pid": os.getpid(), "fork_server": os.getppid(), "folder": str(report.folder)})
    report.during(how)
    answer: dict[str, Any] = globals()[how]()
    return answer


def spin_in_python() -> dict[str, Any]:
    while True:
        pass


def spin_in_native_code() -> dict[str, Any]:
    """Never gives the interpreter lock back."""
    ctypes.PyDLL(None).sleep(10_000)
    return {}


def spin_with_a_child() -> dict[str, Any]:
    subprocess.Popen(["sleep", "10000"])
    return spin_in_python()


def leave_a_child() -> dict[str, Any]:
    return {"child": subprocess.Popen(["sleep", "10000"]).pid}


def abort() -> dict[str, Any]:
    os.abort()


def be_killed() -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def leave_quietly() -> dict[str, Any]:
    os._exit(3)


def leave_loudly() -> dict[str, Any]:
    sys.exit("no more")


def divide_inside_torch() -> dict[str, Any]:
    class Broken(torch.nn.Module):
        def forward(self, x: int) -> float:
            return x / 0  # the line that a person wants to see

    return {"quotient": Broken()(1)}


def chain() -> dict[str, Any]:
    try:
        divide_inside_torch()
    except ZeroDivisionError as error:
        raise RuntimeError("could not divide") from error
    return {}


def write_an_answer_of_its_own() -> dict[str, Any]:
    """To every descriptor that it has, in a message like the worker's."""
    text = json.dumps({"is": "AnsweredReply", "answer": {"correct": True}}).encode()
    for file in range(3, 64):
        with suppress(OSError):
            os.write(file, bytes(16) + struct.pack("!I", len(text)) + text)
    os._exit(0)


def close_every_descriptor() -> dict[str, Any]:
    os.closerange(3, 1 << 16)
    return {"correct": True}


def answer_nan() -> dict[str, Any]:
    return {"value": math.nan}


def take_memory() -> dict[str, Any]:
    """More than any job in these tests may hold, and stay."""
    held = [b"x" * 2**28 for _ in range(16)]
    time.sleep(600)
    return {"held": len(held)}


def show_environment() -> dict[str, Any]:
    return dict(os.environ)
