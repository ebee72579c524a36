"""Which lines of the author's Python run; of kernels none, which on a device no Python runs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .integrity.frames import owner_of_frame


class ReachedLines:
    """Follows one call; a kernel that the interpreter runs is not followed."""

    def __init__(self) -> None:
        self.by_file: dict[str, set[int]] = {}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Inside, what this thread runs is followed."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def announce(self, kernel: Callable[..., Any] | None) -> None:
        """A kernel is about to run; None: it has run."""
        sys.settrace(None if kernel else self._called)

    def _called(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        """What sys.settrace calls for each function, and where it is the author's, calls for each line."""
        if owner_of_frame(frame) != "author":
            return None
        lines = self.by_file.setdefault(frame.f_code.co_filename, set())

        def reach(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            lines.add(frame.f_lineno)
            return reach

        return reach
