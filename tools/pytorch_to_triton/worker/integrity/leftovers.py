"""Which threads and processes that were not there before are still running."""

import _thread
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType

from .frames import TORCH, TRITON, Owner, author_of, owner_of, requester_of

_PR_SET_CHILD_SUBREAPER = 36
STARTED_BY: dict[int, tuple[threading.Thread, Owner | None]] = {}
"""Who started a thread while the sandbox was on, by the id of its object (its hash may be the author's)."""


class Leftovers:
    """What runs now is compared with what ran when this was made.

    Threads without Python code (torch's own pools) are invisible to it, and those that torch or Triton start
    for themselves are theirs. Children are seen on Linux only; call `adopt_orphans` first to see
    grandchildren whose parent has ended.
    """

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())
        self._idents = set(sys._current_frames())
        self._without_object = uncounted()
        self._children = dict(children())

    def found(self) -> list[dict[str, str]]:
        """`{"kind": "thread" | "process", "name": ...}` for each; a process's name ends with its number."""
        processes = [
            {"kind": "process", "name": f"{name} ({pid})"}
            for pid, name in children()
            if pid not in self._children
        ]
        return [*({"kind": "thread", "name": name} for name in self._new_threads()), *processes]

    def _new_threads(self) -> list[str]:
        names, unnamed = [], 0
        known = {thread.ident: thread for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            thread = known.get(ident)
            if thread is None or isinstance(thread, threading._DummyThread):
                if ident not in self._idents and author_of(frame) == "author":
                    names.append(f"{frame.f_code.co_name} in a thread of _thread.start_new_thread")
                    unnamed += 1
            elif thread not in self._threads and not is_machinery(thread, frame):
                names.append(thread.name)
        silent = uncounted() - self._without_object - unnamed
        return names + ["native code in a thread of _thread.start_new_thread"] * silent


def note_start(thread: threading.Thread, frame: FrameType | None) -> None:
    """Remember who starts a thread, by the frame that does."""
    STARTED_BY[id(thread)] = thread, requester_of(frame)[0]


def is_machinery(thread: threading.Thread, frame: FrameType) -> bool:
    """Whether torch, Triton or this worker runs the thread for itself."""
    if id(thread) in STARTED_BY:
        return not is_authors(thread)
    if author_of(frame) == "author":
        return False
    code = getattr(getattr(thread, "_target", None) or type(thread).run, "__code__", None)
    return code is not None and owner_of(code.co_filename) in ("torch", "triton", "worker")


def is_authors(thread: threading.Thread) -> bool:
    """Whether the author's code was seen to start the thread."""
    return STARTED_BY.get(id(thread), (thread, None))[1] == "author"


def uncounted() -> int:
    """How many threads run that `_thread` started and `threading` does not know."""
    main = threading.main_thread()
    threads = [each for each in threading.enumerate() if not isinstance(each, threading._DummyThread)]
    return max(0, _thread._count() - sum(each is not main for each in threads))


def children() -> Iterator[tuple[int, str]]:
    """Number and name of each child process that has not ended, but for torch's and Triton's own."""
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for pid in map(int, file.read_text().split()):
                with suppress(OSError):
                    command = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
                    if not is_zombie(pid) and not any(word.startswith((TORCH, TRITON)) for word in command):
                        yield pid, Path(f"/proc/{pid}/comm").read_text().strip()


def is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def adopt_orphans() -> None:
    """Make every descendant whose parent ends a child of this process. Linux only; elsewhere nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
