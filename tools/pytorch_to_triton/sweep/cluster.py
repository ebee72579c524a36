"""A Ray cluster as executor: an item and phase a task; Ray places tasks, and repeats those of lost nodes.

Every node sees the source and the results folder under the same paths, and has this project installed.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from pytorch_to_triton.errors import MissingRequirement, Refusal
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.jobs.client import WorkerClient, open_client
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.sweep.engine import refused
from pytorch_to_triton.sweep.executor import ON_CPU, where_of
from pytorch_to_triton.sweep.items import SweepItem
from pytorch_to_triton.sweep.journal import Record
from pytorch_to_triton.sweep.phases import ON_DEVICE_ALONE, Known, PhaseName, Slot, Treatment, do

RETRIES = 5
"""How often a task is done again whose node was lost."""
QUEUED = 4
"""Tasks for each of the cluster's slots that are submitted ahead, so that no slot waits for this process."""


class Cluster:
    """A Ray cluster: a CPU an item, a GPU shared by some items, and alone for what is timed."""

    def __init__(
        self, ray: Any, treatment: Treatment, runtime: Runtime, device_jobs: int, where: str
    ) -> None:
        self._ray, self._treatment, self._runtime, self._device_jobs = ray, treatment, runtime, device_jobs
        self._task = ray.remote(max_retries=RETRIES)(do_on_node)
        self.where = where

    def lanes(self, phase: PhaseName) -> int:
        resources = self._ray.cluster_resources()
        needed = self._resources(phase)
        return max(1, QUEUED * int(min(resources.get(_CALLED[name], 0) / n for name, n in needed.items())))

    async def do(self, phase: PhaseName, item: SweepItem, known: Known) -> Record:
        task = self._task.options(**self._resources(phase), name=f"{phase} {item.key}")
        reference = task.remote(phase, self._treatment, self._runtime, item, known)
        try:
            result: Record = await reference
            return result
        finally:
            self._ray.cancel(reference, force=True)  # of nothing, once it is done

    def _resources(self, phase: PhaseName) -> dict[str, float]:
        if self._runtime.interpreter or phase in ON_CPU:
            return {"num_cpus": 1}
        return {"num_cpus": 1, "num_gpus": 1.0 if phase in ON_DEVICE_ALONE else 1.0 / self._device_jobs}


_CALLED = {"num_cpus": "CPU", "num_gpus": "GPU"}


@asynccontextmanager
async def open_cluster(
    address: str, treatment: Treatment, runtime: Runtime, device_jobs: int
) -> AsyncIterator[Cluster]:
    """Connected for as long as the block lasts. Raises MissingRequirement without Ray or a cluster."""
    try:
        import ray
    except ImportError:
        raise MissingRequirement(
            "Ray is not installed.", "pip install 'pytorch-to-triton[ray]' in each node's environment."
        ) from None
    # What Ray says, of a lost node for one, goes to stdout, which is for the result alone.
    with redirect_stdout(sys.stderr):
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError) as error:
            raise MissingRequirement(
                f"There is no Ray cluster at {address}: {error}", "Start one with `ray start --head`."
            ) from None
        try:
            needed = {"num_cpus": 1} if runtime.interpreter else {"num_gpus": 1.0}
            where = await ray.remote(max_retries=RETRIES)(where_on_node).options(**needed).remote(runtime)
            yield Cluster(ray, treatment, runtime, device_jobs, where)
        finally:
            ray.shutdown()


def do_on_node(
    phase: PhaseName, treatment: Treatment, runtime: Runtime, item: SweepItem, known: Known
) -> Record:
    """The phase of one item in a process of a node, which keeps its worker for the tasks that follow."""
    kept = kept_worker()
    try:
        return kept.portal.call(do, phase, Slot(kept.worker, runtime_here(runtime)), treatment, item, known)
    except Refusal as refusal:  # its constructor takes more than what pickle keeps of an exception
        return refused(refusal)


def where_on_node(runtime: Runtime) -> str:
    """The device and the versions of a node."""
    kept = kept_worker()
    return where_of(kept.portal.call(versions, kept.worker, runtime_here(runtime)))


def runtime_here(runtime: Runtime) -> Runtime:
    """The runtime of the process of a node that Ray has given GPUs to."""
    devices = None if runtime.interpreter else os.environ.get("CUDA_VISIBLE_DEVICES")
    return runtime.model_copy(update={"python": sys.executable, "devices": devices})


@dataclass(frozen=True)
class KeptWorker:
    """What a process of a node keeps from task to task."""

    portal: BlockingPortal
    worker: WorkerClient
    opened: ExitStack
    """Holds both open for as long as the process lives."""


@cache
def kept_worker() -> KeptWorker:
    """That of this process."""
    opened = ExitStack()
    portal = opened.enter_context(start_blocking_portal())
    worker = opened.enter_context(portal.wrap_async_context_manager(open_client()))
    return KeptWorker(portal, worker, opened)
