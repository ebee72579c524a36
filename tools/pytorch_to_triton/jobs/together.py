"""Several tasks at once, and one refusal where they fail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def together() -> AsyncIterator[TaskGroup]:
    """A task group that raises what one of its tasks raised: all meet the same refusal, and one is enough."""
    try:
        async with anyio.create_task_group() as group:
            yield group
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None
