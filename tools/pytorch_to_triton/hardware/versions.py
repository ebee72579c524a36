"""Which Python, torch and Triton a runtime has, and which devices."""

import datetime

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.tuning import Origin
from pytorch_to_triton.schema.value import Value

_SECONDS = 60.0


class Device(Value):
    """One device that compiled kernels can run on."""

    name: str
    capability: tuple[int, int]
    """Compute capability, e.g. (9, 0); for ROCm what torch gives in its place."""
    memory_bytes: int
    """In all, free or not."""
    uuid: str | None = None
    """As NVML knows it; None where torch does not report it."""


class Assembler(Value):
    """A ptxas."""

    version: str
    """Of the CUDA toolkit that it belongs to: 12.8."""
    path: str


class Versions(Value):
    """What a runtime's worker runs on."""

    python: str
    torch: str
    triton: str
    interpreter: bool
    cuda: str | None
    """The CUDA version that torch was built for; None for other builds."""
    rocm: str | None
    """The ROCm version that torch was built for; None for other builds."""
    devices: tuple[Device, ...]
    """Empty under the interpreter, which uses none."""
    assemblers: tuple[Assembler, ...] = ()
    """The one that Triton takes for the first device, then one of each other version, the newest first."""


def origin_of(installed: Versions) -> Origin:
    """Where and when something is measured: now, on the first device."""
    return Origin(device=installed.devices[0].name, triton=installed.triton, day=today())


def today() -> datetime.date:
    """The date in UTC."""
    return datetime.datetime.now(tz=datetime.UTC).date()


async def versions(worker: WorkerClient, runtime: Runtime) -> Versions:
    """What the runtime's worker runs on, asked once for each client. Raises MissingRequirement."""
    outcome = await worker.ask_once(Job(kind="versions"), runtime, seconds=_SECONDS)
    if outcome.answer is None:
        raise MissingRequirement(
            f"{runtime.python} does not report its versions: {outcome.detail}.",
            f"Run it by hand: {runtime.python} -P {places.WORKER / 'bootstrap.py'} {outcome.folder}",
        )
    return Versions.model_validate(outcome.answer)
