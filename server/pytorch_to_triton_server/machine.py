"""What this machine runs kernels on."""

from pathlib import Path
from typing import Literal

from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.hardware.versions import Device, Versions, versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton_server.names import DeviceChoice
from pytorch_to_triton_server.pythons import python_of, ready_python

_DRIVER_NODES = ("nvidiactl", "nvmap", "dxg", "kfd")
"""In /dev: NVIDIA's driver, the same on Jetson, a GPU passed through by Windows, AMD's driver."""


class Machine(Value):
    """What kernels run on here."""

    summary: str
    """One sentence."""
    next_step: str
    mode: Literal["cuda", "interpreter"]
    """What `device=auto` chooses."""
    python: str
    torch: str
    triton: str
    cuda: str | None
    """The CUDA version that torch was built for; None for other builds."""
    rocm: str | None
    """The ROCm version that torch was built for; None for other builds."""
    devices: tuple[Device, ...]


async def choose_runtime(worker: WorkerClient, choice: DeviceChoice, python: str | None = None) -> Runtime:
    """The runtime that `choice` means, in `python` (default: this one).

    Raises MissingRequirement for `cuda` if torch finds no GPU, and if `python` does not have torch or triton.
    """
    executable = await python_of(python)
    interpreter = Runtime(python=executable, interpreter=True)
    compiled = Runtime(python=executable, interpreter=False)
    if choice == "interpreter":
        return interpreter
    # Without a driver there is no need to import torch, which takes seconds.
    if _has_driver() and (await versions(worker, compiled)).devices:
        return compiled
    if choice == "cuda":
        raise MissingRequirement(
            "This machine has no GPU that torch can use.",
            "Use --device auto or interpreter to run kernels under Triton's interpreter on the CPU.",
        )
    return interpreter


def warm(worker: WorkerClient, choice: DeviceChoice, python: str | None = None) -> None:
    """Start the fork servers that a validation needs: with a GPU, kernels also run under the interpreter."""
    executable = ready_python(python)
    if executable is None:
        return
    if choice != "interpreter" and _has_driver():
        worker.warm(Runtime(python=executable, interpreter=False))
    worker.warm(Runtime(python=executable, interpreter=True))


async def describe_machine(worker: WorkerClient, python: str | None = None) -> Machine:
    """Ask torch and Triton what is here. Raises MissingRequirement if they are not installed."""
    runtime = await choose_runtime(worker, "auto", python)
    installed = await versions(worker, runtime)
    return Machine(
        summary=_summary_of(installed),
        next_step=(
            "Correctness can be checked here (validate runs on the CPU), but speed cannot be measured."
            if runtime.interpreter
            else "validate and convert use the GPU by default."
        ),
        mode="interpreter" if runtime.interpreter else "cuda",
        **installed.model_dump(exclude={"interpreter", "assemblers"}),
    )


def _summary_of(installed: Versions) -> str:
    stack = f"Python {installed.python}, torch {installed.torch}, Triton {installed.triton}"
    if installed.devices:
        names = ", ".join(device.name for device in installed.devices)
        return f"Kernels are compiled and run on {names} ({stack})."
    return f"torch finds no usable GPU: kernels run under Triton's interpreter on the CPU ({stack})."


def _has_driver() -> bool:
    return any(Path("/dev", node).exists() for node in _DRIVER_NODES)
