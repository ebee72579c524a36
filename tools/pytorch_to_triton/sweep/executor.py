"""Who does the phases of items: this machine, with all of its GPUs; cluster.py has the other one."""

import os
from collections import deque
from typing import Protocol

from pytorch_to_triton.hardware.versions import Versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.sweep.items import SweepItem
from pytorch_to_triton.sweep.journal import Record
from pytorch_to_triton.sweep.phases import ON_DEVICE_ALONE, Known, PhaseName, Slot, Treatment, do

ON_CPU: tuple[PhaseName, ...] = ("draft", "audit")
"""They run no kernel on a device."""


class Executor(Protocol):
    """Does phases of items, any number at once."""

    where: str
    """The device and the versions that results hold for."""

    def lanes(self, phase: PhaseName) -> int:
        """How many items it deals with at once."""

    async def do(self, phase: PhaseName, item: SweepItem, known: Known) -> Record:
        """The phase of one item. Raises a Refusal where it cannot be done."""


class Local:
    """This machine: a core an item, a GPU shared by some items, and alone for what is timed."""

    def __init__(
        self,
        worker: WorkerClient,
        treatment: Treatment,
        runtime: Runtime,
        installed: Versions,
        jobs: int,
        device_jobs: int,
    ) -> None:
        self.where = where_of(installed)
        self._worker, self._treatment = worker, treatment
        on_cpu = [runtime] * jobs
        gpus = [runtime] if runtime.interpreter else runtimes_of(runtime, len(installed.devices))
        self._shared = deque(on_cpu if runtime.interpreter else gpus * device_jobs)
        self._alone = deque(gpus)
        self._on_cpu = deque(on_cpu)

    def lanes(self, phase: PhaseName) -> int:
        return len(self._free(phase))

    async def do(self, phase: PhaseName, item: SweepItem, known: Known) -> Record:
        free = self._free(phase)
        runtime = free.popleft()
        try:
            return await do(phase, Slot(self._worker, runtime), self._treatment, item, known)
        finally:
            free.append(runtime)

    def _free(self, phase: PhaseName) -> deque[Runtime]:
        if phase in ON_CPU:
            return self._on_cpu
        return self._alone if phase in ON_DEVICE_ALONE else self._shared


def where_of(installed: Versions) -> str:
    """`NVIDIA H200, torch 2.11.0, Triton 3.6.0`, or the interpreter in place of the GPU."""
    device = installed.devices[0].name if installed.devices else "interpreter"
    return f"{device}, torch {installed.torch}, Triton {installed.triton}"


def runtimes_of(runtime: Runtime, count: int) -> list[Runtime]:
    """A runtime for each GPU; the one that is given where there is one GPU."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    names = visible or [str(number) for number in range(count)]
    if len(names) < 2:
        return [runtime]
    return [runtime.model_copy(update={"devices": name}) for name in names[:count]]
