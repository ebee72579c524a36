"""Calls that send Ctrl-C to their own process, by name; test_interruptible.py runs each by itself."""

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable

import anyio
import pytest

from pytorch_to_triton_server.progress import run_interruptible

TIMES = 40
SECONDS = 60.0
"""Longer than any machine takes to deliver a signal."""
Function = Callable[[], Awaitable[None]]


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def waiting() -> None:
    """As a command does for its worker: in scopes that end again and again."""
    until = anyio.current_time() + SECONDS
    while anyio.current_time() < until:
        with anyio.move_on_after(0.0005):
            await anyio.sleep(SECONDS)


async def together() -> None:
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(waiting)
        await waiting()


async def nested() -> None:
    with anyio.move_on_after(SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(together)
            await waiting()


def every_time(function: Function) -> None:
    """Interrupted a little later each time, once it runs."""
    for number in range(TIMES):

        async def armed(after: float = 0.002 + number * 1e-4) -> None:
            timer = threading.Timer(after, interrupt)
            timer.start()
            await function()

        with pytest.raises(KeyboardInterrupt):
            run_interruptible(armed)


def twice() -> None:
    """The second one comes while the first is put in order."""

    async def slow_to_end() -> None:
        try:
            interrupt()
            await anyio.sleep(SECONDS)
        finally:
            with anyio.CancelScope(shield=True):
                interrupt()
                await anyio.sleep(SECONDS)

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(slow_to_end)


def ignored() -> None:
    """As in the background of a shell."""

    async def interrupted() -> str:
        interrupt()
        await anyio.sleep(0.01)
        return "done"

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert run_interruptible(interrupted) == "done"
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


CALLS = {
    "waiting": lambda: every_time(waiting),
    "together": lambda: every_time(together),
    "nested": lambda: every_time(nested),
    "twice": twice,
    "ignored": ignored,
}

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    CALLS[sys.argv[1]]()
    print("as it should be")
