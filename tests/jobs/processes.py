"""Jobs that are done for the test's sake, and whether a process is still there."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil

from pytorch_to_triton.schema.job import Job, Outcome

JOBS = Path(__file__).parent / "jobs"
LONG_SECONDS = 120.0
"""Far more than any honest job takes, also on a busy machine."""
Ask = Callable[..., Awaitable[Outcome]]
"""A client's `ask` that needs the job alone."""


def honest(what: str, **arguments: Any) -> Job:
    return Job(kind=str(JOBS / "honest.py"), arguments={"what": what, **arguments})


def hostile(how: str) -> Job:
    return Job(kind=str(JOBS / "hostile.py"), arguments={"how": how})


def is_gone(pid: int) -> bool:
    """Whether the process has ended; one that nobody collects counts as ended."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
