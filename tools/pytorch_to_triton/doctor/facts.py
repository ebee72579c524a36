"""What is gathered about a machine, each thing within its time, whatever becomes of the others."""

import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from pytorch_to_triton import places
from pytorch_to_triton.command_line import NAME
from pytorch_to_triton.doctor.disk import (
    FolderState,
    read_environments,
    read_folder,
    read_locks,
    read_runs,
)
from pytorch_to_triton.doctor.gpu import read_driver, read_nodes
from pytorch_to_triton.doctor.outcomes import NotSeen, T
from pytorch_to_triton.doctor.programs import read_environment
from pytorch_to_triton.doctor.stack import How, KernelTrial, Surroundings, reason, try_kernel
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.hardware.versions import Versions, versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.profilers.profile import find_ncu
from pytorch_to_triton.profilers.sanitizer import find_sanitizer
from pytorch_to_triton.schema.job import Job, Runtime

LOOKS: Mapping[str, Callable[[], Any]] = {
    "the driver": read_driver,
    "device files": read_nodes,
    "compute-sanitizer": find_sanitizer,
    "Nsight Compute": find_ncu,
    "PATH": lambda: shutil.which(NAME),
    "the cache": lambda: read_folder(places.cache()),
    "temporary files": lambda: read_folder(Path(tempfile.gettempdir())),
    "run folders": read_runs,
    "environments": read_environments,
    "locks": read_locks,
    "variables": read_environment,
}
"""What this process reads by itself."""
_LOOK_SECONDS = 10.0
_WORK_SECONDS = 75.0
"""Of what waits for a worker, whose imports take a while from a cold disk."""
_POLL_SECONDS = 0.02
_STEPS = len(LOOKS) + 6
"""How many facts there are."""


@dataclass(frozen=True)
class MachineFacts:
    """All that the checks look at; NotSeen where it could not be found out."""

    python: str
    local: Mapping[str, Any]
    """By the names of LOOKS."""
    versions: Versions | NotSeen
    """Of the worker's Python, in compiled mode, as are the next two."""
    surroundings: Surroundings | NotSeen
    triton_cache: FolderState | NotSeen
    trials: Mapping[How, KernelTrial | NotSeen]
    """Without the GPU's where torch has none."""


class Inquiry:
    """Finds out one fact after the other, and tells a listener."""

    def __init__(self, listener: ProgressListener) -> None:
        self._listener = listener
        self._done = 0

    async def look(self, name: str, look: Callable[[], T]) -> T | NotSeen:
        """What `look` reads, in a thread that nobody waits for where a driver or a disk hangs."""
        return await self.ask(name, lambda: in_thread(look), _LOOK_SECONDS)

    async def ask(
        self, name: str, find: Callable[[], Awaitable[T | NotSeen]], seconds: float = _WORK_SECONDS
    ) -> T | NotSeen:
        """What `find` returns, or why it does not within `seconds`; never raises."""
        await self._listener.progress(self._done, _STEPS, f"checking {name}")
        fact: T | NotSeen = NotSeen(f"{name}: no answer within {seconds:g} s")
        with anyio.move_on_after(seconds):
            try:
                fact = await find()
            except MissingRequirement as refusal:
                fact = NotSeen(refusal.message, refusal.hint)
            except Exception as error:  # one check that fails must not take the others with it
                fact = NotSeen(f"{name}: {type(error).__name__}: {error}")
        self._done += 1
        return fact


async def in_thread(look: Callable[[], T]) -> T:
    """What `look` returns or raises; its thread does not keep the process from ending."""
    results: list[T] = []
    raised: list[Exception] = []

    def work() -> None:
        try:
            results.append(look())
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        await anyio.sleep(_POLL_SECONDS)
    if raised:
        raise raised[0]
    return results[0]


async def gather(worker: WorkerClient, python: str, listener: ProgressListener) -> MachineFacts:
    """Look at everything, at once where that is quicker."""
    inquiry = Inquiry(listener)
    trials: dict[How, KernelTrial | NotSeen] = {}
    local: dict[str, Any] = {}
    runtime = Runtime(python=python, interpreter=False)

    async def look_around() -> None:
        for name, look in LOOKS.items():
            local[name] = await inquiry.look(name, look)

    async def attempt(how: How) -> None:
        trials[how] = await inquiry.ask(f"a kernel, {how}", lambda: try_kernel(worker, python, how))

    async def find_surroundings() -> Surroundings | NotSeen:
        outcome = await worker.ask(Job(kind="surroundings"), runtime, seconds=_WORK_SECONDS)
        if outcome.answer is None:
            return NotSeen(reason(outcome))
        return Surroundings.model_validate(outcome.answer)

    async with task_group() as group:
        group.start_soon(look_around)
        group.start_soon(attempt, "interpreted")
        group.start_soon(attempt, "compiled")
        known = await inquiry.ask("torch and Triton", lambda: versions(worker, runtime))
        around = await inquiry.ask("what Triton needs", find_surroundings)
        if not isinstance(known, NotSeen) and known.devices:
            await attempt("on the GPU")
        cache: FolderState | NotSeen
        if isinstance(around, NotSeen):
            cache = around
        else:
            folder = Path(around.triton_cache)
            cache = await inquiry.look("Triton's cache", lambda: read_folder(folder))
    return MachineFacts(python, local, known, around, cache, trials)
