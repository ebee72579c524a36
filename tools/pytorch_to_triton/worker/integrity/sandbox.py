"""What the author's code must not do: recorded at once, and refused.

A Python audit hook can never be removed: one per process is installed, and does nothing unless a sandbox
watches. It sees what Python does; native code in this process is beyond it, so loading any is refused.
"""

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from .audit_events import Violation, readers
from .folders import Folders
from .frames import author_frame, author_of, requested_by_author
from .guarded_functions import guards

Record = dict[str, Any]
MOST_RECORDS = 20


class SandboxRefusal(PermissionError):
    """The author's code asked for something that computing a result does not need."""


class Sandbox:
    """Refuses and records violations: the first 20 different ones, each given to `report` at once.

    A record is `{"kind", "what", "file", "line"}`.

    Kinds: native_code, inspects_the_process, starts_processes, network, touches_files, hides_operators,
    tampers.
    """

    def __init__(
        self, secret: Sequence[Path], kept: Sequence[Path], report: Callable[[Record], None]
    ) -> None:
        self.violations: list[Record] = []
        self._report = report
        self._readers = readers(Folders.at(secret, kept))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what this process does inside."""
        install_hook()
        with guards(self._refuse):
            _watching.append(self)
            try:
                yield
            finally:
                _watching.remove(self)

    def heeds(self, event: str) -> bool:
        """Whether an event of this name can be a violation."""
        return event in self._readers

    def seen(self, event: str, args: tuple[Any, ...], frame: FrameType) -> None:
        """Raises SandboxRefusal where the author's code caused an event that is a violation."""
        violation = self._readers[event](args, frame)
        if violation is not None:
            self._refuse(violation, frame)

    def _refuse(self, violation: Violation, frame: FrameType) -> None:
        """Folders are closed to torch and Triton too, when the author's code leads to them."""
        is_closed = violation[0] == "touches_files"
        if author_of(frame) is not None if is_closed else requested_by_author(frame):
            self._record(violation, frame)
            raise SandboxRefusal(f"not allowed here: {violation[1]}")

    def _record(self, violation: Violation, frame: FrameType) -> None:
        kind, what = violation
        place = author_frame(frame)
        record = {
            "kind": kind,
            "what": what,
            "file": place.f_code.co_filename if place else None,
            "line": place.f_lineno if place else None,
        }
        if record not in self.violations and len(self.violations) < MOST_RECORDS:
            self.violations.append(record)
            self._report(record)


_watching: list[Sandbox] = []
_busy = threading.local()
"""What the hook itself does raises events too."""


@functools.cache
def install_hook() -> None:
    sys.addaudithook(hook)


def hook(event: str, args: tuple[Any, ...]) -> None:
    if not _watching or not _watching[-1].heeds(event) or getattr(_busy, "now", False):
        return
    _busy.now = True
    try:
        frame = sys._getframe().f_back
        if frame is not None:  # there is none in a thread of native code
            _watching[-1].seen(event, args, frame)
    finally:
        _busy.now = False
