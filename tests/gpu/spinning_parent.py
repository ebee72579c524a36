"""Holds a door on spinning jobs, prints one line of JSON for each, and ends when stdin closes."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from pytorch_to_triton.gpu.door import Door, open_door
from pytorch_to_triton.schema.job import Job, Mode

HOSTILE = str(Path(__file__).parent / "jobs" / "hostile.py")
MODE = Mode(python=sys.executable, interpreter=False)


class Printer:
    async def progress(self, done: float, total: float | None, message: str) -> None:
        pass

    async def item(self, result: dict[str, Any]) -> None:
        print(json.dumps(result), flush=True)


async def spin(door: Door, how: str) -> None:
    await door.ask(Job(kind=HOSTILE, arguments={"how": how}), MODE, seconds=10_000, watch=Printer())


async def main(ways: list[str]) -> None:
    async with open_door() as door, anyio.create_task_group() as tasks:
        for how in ways:
            tasks.start_soon(spin, door, how)
        await anyio.wait_readable(sys.stdin)
        tasks.cancel_scope.cancel()


anyio.run(main, sys.argv[1:])
