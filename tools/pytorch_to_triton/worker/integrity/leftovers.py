"""Which threads that were not there before are still running. Processes are refused when they start."""

import threading

from .frames import owner_of


class Leftovers:
    """What runs now is compared with what ran when this was made.

    Threads without Python code (torch's own pools) are invisible to it.
    """

    def __init__(self) -> None:
        self._threads = set(threading.enumerate())

    def found(self) -> list[dict[str, str]]:
        """`{"kind": "thread", "name": ...}` for each."""
        new = (thread for thread in threading.enumerate() if thread not in self._threads)
        return [{"kind": "thread", "name": thread.name} for thread in new if not is_machinery(thread)]


def is_machinery(thread: threading.Thread) -> bool:
    """Whether torch or this worker runs the thread for itself, or native code that called Python once."""
    code = getattr(getattr(thread, "_target", None) or type(thread).run, "__code__", None)
    runs = owner_of(code.co_filename) if code else "author"
    return runs in ("torch", "worker") or isinstance(thread, threading._DummyThread)
