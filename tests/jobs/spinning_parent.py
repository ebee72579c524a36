"""Holds a client on spinning jobs, prints one line of JSON for each, and ends when stdin closes."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from pytorch_to_triton.jobs.client import WorkerClient, open_client
from pytorch_to_triton.schema.job import Job, Runtime

HOSTILE = str(Path(__file__).parent / "jobs" / "hostile.py")
RUNTIME = Runtime(python=sys.executable, interpreter=False)


class Printer:
    async def progress(self, done: float, total: float | None, message: str) -> None:
        pass

    async def item(self, result: dict[str, Any]) -> None:
        print(json.dumps(result), flush=True)


async def spin(worker: WorkerClient, how: str) -> None:
    await worker.ask(Job(kind=HOSTILE, arguments={"how": how}), RUNTIME, seconds=10_000, listener=Printer())


async def main(ways: list[str]) -> None:
    async with open_client() as worker, anyio.create_task_group() as tasks:
        for how in ways:
            tasks.start_soon(spin, worker, how)
        await anyio.wait_readable(sys.stdin)
        tasks.cancel_scope.cancel()


anyio.run(main, sys.argv[1:])
