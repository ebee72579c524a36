"""Ways in which the author's code would run later, when nothing watches: removed after each call."""

import gc
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any


def timer(number: int) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """How to read what a timer has left, and how to stop it."""
    return lambda: signal.getitimer(number), lambda _: signal.setitimer(number, 0)


SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "sys.setprofile": (sys.getprofile, sys.setprofile),
    "sys.settrace": (sys.gettrace, sys.settrace),
    "threading.setprofile": (threading.getprofile, threading.setprofile),
    "threading.settrace": (threading.gettrace, threading.settrace),
    "gc.set_threshold": (gc.get_threshold, lambda values: gc.set_threshold(*values)),
    "signal.setitimer(ITIMER_REAL)": timer(signal.ITIMER_REAL),
    "signal.setitimer(ITIMER_VIRTUAL)": timer(signal.ITIMER_VIRTUAL),
    "signal.setitimer(ITIMER_PROF)": timer(signal.ITIMER_PROF),
}


class Hooks:
    """What was set when this was made; `remove` puts it back."""

    def __init__(self) -> None:
        self._before = {name: read() for name, (read, _) in SETTINGS.items()}
        self._callbacks = list(gc.callbacks)

    def remove(self) -> list[str]:
        """The names of what the author's code has set since; nothing of it runs any more.

        What is garbage by now is collected at once, so that its finalizers run while they are watched.
        """
        found = []
        for name, (read, write) in SETTINGS.items():
            if read() != self._before[name]:
                write(self._before[name])
                found.append(name)
        if gc.callbacks != self._callbacks:
            gc.callbacks[:] = self._callbacks
            found.append("gc.callbacks")
        gc.collect(1)
        return found
