"""Tests that interfere while a candidate runs."""

from collections.abc import Callable


class WhileRunning:
    """A listener that acts each time that a candidate is about to be called."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    async def progress(self, done: float, total: float | None, message: str) -> None:
        if total:
            self._act()

    async def item(self, result: object) -> None: ...
