"""Several tasks at once, which fail with one exception."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def task_group() -> AsyncIterator[TaskGroup]:
    """A task group that raises the first exception of its tasks by itself, not as a group."""
    try:
        async with anyio.create_task_group() as group:
            yield group
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None
