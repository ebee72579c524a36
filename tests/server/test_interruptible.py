"""Ctrl-C is never lost, wherever a command is just then."""

import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest

from pytorch_to_triton_server.interruptible import run_interruptible

TIMES = 40
SECONDS = 20.0


@pytest.fixture(autouse=True)
def ctrl_c_interrupts() -> Iterator[None]:
    """As in a terminal; where the tests run in the background, it may be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


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


@pytest.mark.parametrize("function", [waiting, together, nested])
def test_ctrl_c_ends_it_every_time(function: Callable[[], Awaitable[None]]) -> None:
    for number in range(TIMES):
        timer = threading.Timer(0.01 + number * 1e-4, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run_interruptible(function)
        timer.join()


def test_a_second_ctrl_c_does_not_wait_for_what_is_put_in_order() -> None:
    async def slow_to_end() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep(SECONDS)
        finally:
            with anyio.CancelScope(shield=True):
                os.kill(os.getpid(), signal.SIGINT)
                await anyio.sleep(SECONDS)

    with pytest.raises(KeyboardInterrupt):
        run_interruptible(slow_to_end)


def test_without_ctrl_c_the_result_is_returned_and_an_error_raised_as_it_is() -> None:
    async def result(value: int) -> int:
        return value

    async def fails() -> None:
        raise ValueError("as it is")

    assert run_interruptible(result, 3) == 3
    with pytest.raises(ValueError, match="as it is"):
        run_interruptible(fails)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_ctrl_c_is_ignored_as_in_the_background_it_stays_ignored() -> None:
    async def interrupted() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep(0.01)
        return "done"

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert run_interruptible(interrupted) == "done"
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
