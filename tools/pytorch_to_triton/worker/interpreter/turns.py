"""Programs that may wait for one another take turns: on a GPU they run at the same time.

Each runs in a thread of its own, only one at a time, and gives way after each turn of a `while` loop.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

RESIDENT = 64
"""Programs that run at the same time, at most: as on a GPU, the others start as these end."""
Resume = Callable[[], None]
"""Makes a program that gave way the running one again."""


class LaunchEnded(BaseException):
    """Raised in a program whose launch is over because another one failed."""


class RunningProgram:
    """A program in a thread, which runs while `run_on` waits for it."""

    def __init__(self, run: Callable[[], None], pause: Callable[[], Resume]) -> None:
        self.is_done = False
        self._pause = pause
        self._resume: Resume | None = None
        self._error: BaseException | None = None
        self._launch_ended = False
        self._turn, self._turn_over = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._run, args=(run,), daemon=True).start()

    def run_on(self) -> None:
        """Let it run until it gives way or ends. Raises what it raises."""
        if self._resume is not None:
            self._resume()
        self._turn.release()
        self._turn_over.acquire()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """End it where it gave way."""
        self._launch_ended = True
        self._turn.release()
        self._turn_over.acquire()

    def give_way(self) -> None:
        """To be called in its thread."""
        self._resume = self._pause()
        self._turn_over.release()
        self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        self._turn.acquire()
        if self._launch_ended:
            raise LaunchEnded

    def _run(self, run: Callable[[], None]) -> None:
        THREAD.program = self
        try:
            self._wait_for_turn()
            with np.errstate(all="ignore"):
                run()
        except LaunchEnded:
            pass
        except BaseException as error:
            self._error = error
        self.is_done = True
        self._turn_over.release()


class _Thread(threading.local):
    program: RunningProgram | None = None


THREAD = _Thread()


def give_way() -> None:
    """Let the launch's other programs run, where they take turns; to be called after a turn of a loop."""
    if THREAD.program is not None:
        THREAD.program.give_way()


def take_turns(programs: Iterable[Callable[[], None]], pause: Callable[[], Resume]) -> None:
    """Run the programs of a launch. Raises what the first of them raises that fails.

    `pause` is called in a program that gives way.
    """
    unstarted, waiting = iter(programs), deque[RunningProgram]()
    try:
        while True:
            run = next(unstarted, None) if len(waiting) < RESIDENT else None
            if run is None and not waiting:
                return
            program = waiting.popleft() if run is None else RunningProgram(run, pause)
            program.run_on()
            if not program.is_done:
                waiting.append(program)
    finally:
        for program in waiting:
            program.end()
