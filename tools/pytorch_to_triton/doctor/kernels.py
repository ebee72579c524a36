"""A small kernel: interpreted, compiled for a GPU that need not be here, and run on the one that is."""

from typing import Literal

from pytorch_to_triton.doctor.outcomes import CheckOutcome, NotSeen, absent, broken, doubtful, fine
from pytorch_to_triton.hardware.architectures import ARCHITECTURES, DEFAULT
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.value import Value

How = Literal["interpreted", "compiled", "on the GPU"]
_SECONDS = 60.0
_SLOW_SECONDS = 20.0
_FIXES: dict[How, str] = {
    "interpreted": "Install torch and Triton again, in releases that were made for each other.",
    "compiled": "Install Triton again; where TRITON_PTXAS_PATH is set, unset it.",
    "on the GPU": "Fix what failed above first; then look at the driver's messages with dmesg.",
}


class KernelTrial(Value):
    """What job `try_kernel` answers."""

    seconds: float
    seen: str


async def try_kernel(worker: WorkerClient, python: str, how: How) -> KernelTrial | NotSeen:
    """Compile or run it. Raises MissingRequirement as WorkerClient.ask does."""
    gpu = ARCHITECTURES[DEFAULT]
    target = {"backend": gpu.backend, "arch": gpu.compiler_arch, "warp_size": gpu.warp_size}
    job = Job(kind="try_kernel", arguments={"target": target if how == "compiled" else None})
    outcome = await worker.ask(
        job, Runtime(python=python, interpreter=how == "interpreted"), seconds=_SECONDS
    )
    if outcome.answer is None:
        return NotSeen(reason(outcome), _FIXES[how])
    return KernelTrial.model_validate(outcome.answer)


def reason(outcome: Outcome) -> str:
    """Why a job did not answer, in a line."""
    said = outcome.failure.named if outcome.failure else outcome.detail
    return said.strip().splitlines()[0] if said.strip() else outcome.status


def check_kernel(trial: KernelTrial | NotSeen | None, how: How) -> CheckOutcome:
    """What became of it; None: it was not tried."""
    if trial is None:
        return absent("It was not tried: " + _why_not(how))
    if isinstance(trial, NotSeen):
        return broken(f"It does not work: {trial.why.rstrip('.')}.", trial.fix)
    what = f"{trial.seen} in {trial.seconds:.1f} s"
    if trial.seconds > _SLOW_SECONDS:
        return doubtful(f"It works, but slowly: {what}.", "Put Triton's cache and /tmp on a local disk.")
    return fine(f"{what[:1].upper()}{what[1:]}." if how == "compiled" else f"Ran {what}.")


def _why_not(how: How) -> str:
    return "torch has no GPU to run it on." if how == "on the GPU" else "the worker does not start."
