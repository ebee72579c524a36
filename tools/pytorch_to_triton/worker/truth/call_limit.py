"""How long a call of the reference may take: a loop until convergence never ends on NaN."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

LEAST_SECONDS = 10.0
"""Any call may take as long."""
TIMES_LONGEST = 10
"""And so many times what the longest has taken that returned: sizes and precisions differ."""
AGAIN_SECONDS = 0.5
"""After the limit it is raised again and again: a callback, or an `except Exception`, may swallow it."""


class NotEnded(Exception):
    """A call of the reference has not returned within its limit."""


@dataclass
class CallLimit:
    """Learns from calls that return; the first one may take as long as its process lives."""

    longest_seconds: float | None = None
    """Of the calls that returned; None: none has."""

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """One call. Raises NotEnded inside, between two steps of Python."""
        began = time.monotonic()
        if self.longest_seconds is None:
            yield
        else:
            with raised_after(max(LEAST_SECONDS, TIMES_LONGEST * self.longest_seconds)):
                yield
        self.longest_seconds = max(self.longest_seconds or 0.0, time.monotonic() - began)


@contextmanager
def raised_after(seconds: float) -> Iterator[None]:
    """Raises NotEnded in the block where that takes longer."""

    def end(signum: int, frame: Any) -> None:
        raise NotEnded(f"did not end within {seconds:.3g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
