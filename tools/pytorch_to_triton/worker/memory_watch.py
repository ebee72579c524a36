"""How much memory the processes of a job hold, and how much they may.

A process that takes all there is makes the kernel kill whichever process it likes, the user's editor among
them. Address space says nothing here: CUDA reserves far more than it uses.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

VARIABLE = "PYTORCH_TO_TRITON_MEMORY_GIB"
"""Sets the limit of one job."""
_SHARE = 0.8
"""Of the machine's memory, or of the container's."""
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def memory_limit() -> int:
    """Bytes that the processes of one job may hold."""
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
