"""Ctrl-C ends a command, whatever it waits for."""

import signal
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_interruptible(function: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
    """What the function returns, in an event loop of its own. Raises KeyboardInterrupt at Ctrl-C."""
    import anyio

    return anyio.run(until_interrupted, function, *arguments)


async def until_interrupted(function: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
    """What the function returns. Raises KeyboardInterrupt once it has ended; a second Ctrl-C does not wait.

    asyncio's own way cancels a task once, which a scope of anyio's that ends at that moment takes for its own
    cancellation: one Ctrl-C in a hundred was lost.
    """
    import asyncio

    import anyio

    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:

        def interrupt() -> None:
            loop.remove_signal_handler(signal.SIGINT)
            scope.cancel()

        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            return await function(*arguments)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
    raise KeyboardInterrupt
