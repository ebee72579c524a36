"""One lock a device, held across processes: nothing else runs during a timing."""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from filelock import FileLock, Timeout

from pytorch_to_triton import places
from pytorch_to_triton.jobs.no_answer import cache_required
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Runtime

_POLL_SECONDS = 0.05
_REPORT_SECONDS = 1.0
"""After each such wait, the listener is sent who holds the device."""


def device_of(runtime: Runtime) -> str:
    """The GPU that the runtime's kernels run on, the first that it sees: `cuda-0`."""
    seen = runtime.devices or os.environ.get("CUDA_VISIBLE_DEVICES") or "0"
    return f"cuda-{re.sub(r'[^A-Za-z0-9-]', '_', seen.partition(',')[0])}"


@asynccontextmanager
async def device_lock(name: str, listener: ProgressListener | None = None) -> AsyncIterator[None]:
    """Hold the device `name` (e.g. `cuda-0`) alone on this machine until the block ends.

    Waits as long as it takes; the wait can be cancelled. A lock ends with the process that holds it.
    """
    with cache_required():
        places.locks().mkdir(parents=True, exist_ok=True)
    lock = FileLock(places.locks() / f"{name}.lock")
    holder = places.locks() / f"{name}.holder"
    while not await _try_to_acquire(lock, _REPORT_SECONDS):
        if listener:
            await listener.progress(0, None, f"waiting for {name}, which {_whose(holder)} holds")
    try:
        holder.write_text(str(os.getpid()), encoding="utf-8")
        yield
    finally:
        lock.release()


async def _try_to_acquire(lock: FileLock, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        while True:
            try:
                lock.acquire(blocking=False)
            except Timeout:
                await anyio.sleep(_POLL_SECONDS)
            else:
                return True
    return False


def _whose(holder: Path) -> str:
    try:
        return f"process {holder.read_text(encoding='utf-8')}"
    except FileNotFoundError:
        return "another process"
