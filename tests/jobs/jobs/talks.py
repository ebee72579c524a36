"""A job that answers what it is asked, and does what no job should."""

import os
import signal
import sys
import time
from typing import Any


def work(report: Any) -> dict[str, Any]:
    report.item({"ready": os.getpid(), "fork_server": os.getppid(), "decimal": "decimal" in sys.modules})
    for request in report.requests():
        report.during(request["name"])
        report.item({"twice": globals()[request["name"]](request["number"])})
    return {"asked": "enough"}


def double(number: int) -> int:
    return 2 * number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGSEGV)
    return number


def kill_itself(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def kill_fork_server(number: int) -> int:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)  # its children go with it
    return number


def sleep(number: int) -> int:
    time.sleep(number)
    return number
