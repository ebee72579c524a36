"""Python, torch and Triton, what they find around them, and a small kernel interpreted, compiled and run."""

from collections.abc import Sequence
from typing import Literal

from pytorch_to_triton.doctor.gpu import DeviceNode, DriverState
from pytorch_to_triton.doctor.outcomes import CheckOutcome, NotSeen, absent, broken, doubtful, fine
from pytorch_to_triton.hardware.architectures import ARCHITECTURES, DEFAULT
from pytorch_to_triton.hardware.miscompilations import Release, concerning, release
from pytorch_to_triton.hardware.versions import Versions
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.triton_api.history import history

OLDEST_PYTHON, OLDEST_TORCH, OLDEST_TRITON = (3, 11), (2, 11), (3, 6)
_SET_UP = "Install torch and triton into it, or name a Python that has them with --python."
How = Literal["interpreted", "compiled", "on the GPU"]
_SECONDS = 60.0
_SLOW_SECONDS = 20.0
_FIXES: dict[How, str] = {
    "interpreted": "Install torch and Triton again, in releases that were made for each other.",
    "compiled": "Install Triton again; where TRITON_PTXAS_PATH is set, unset it.",
    "on the GPU": "Fix what failed above first; then look at the driver's messages with dmesg.",
}


class Surroundings(Value):
    """What job `surroundings` answers."""

    gpu_problem: str
    """Why torch can use no GPU; empty where it can."""
    assembler: str
    """ptxas and its version; empty where Triton finds none."""
    compiler: str
    compiler_problem: str
    triton_cache: str


def version_text(version: Release) -> str:
    """`3.9` of (3, 9, 0)."""
    return ".".join(map(str, version[:2]))


def check_python(versions: Versions | NotSeen, python: str) -> CheckOutcome:
    """Whether the worker starts there, torch and Triton import, and Python is new enough."""
    if isinstance(versions, NotSeen):
        why = versions.why.rstrip(".")
        return broken(f"The worker does not start in {python}: {why}.", versions.fix or _SET_UP)
    if release(versions.python) < OLDEST_PYTHON:
        return broken(
            f"{python} is Python {versions.python}.", f"Use Python {version_text(OLDEST_PYTHON)} or newer."
        )
    return fine(f"The worker starts in Python {versions.python} ({python}).")


def check_torch(versions: Versions) -> CheckOutcome:
    """Whether torch is new enough."""
    if release(versions.torch) < OLDEST_TORCH:
        return broken(
            f"torch {versions.torch} is too old.", f"Install torch {version_text(OLDEST_TORCH)} or newer."
        )
    build = f"CUDA {versions.cuda}" if versions.cuda else f"ROCm {versions.rocm}" if versions.rocm else ""
    return fine(f"torch {versions.torch}, built for {build or 'the CPU only'}.")


def check_torch_on_gpu(
    versions: Versions,
    surroundings: Surroundings | NotSeen,
    driver: DriverState | NotSeen,
    nodes: Sequence[DeviceNode],
) -> CheckOutcome:
    """Whether torch's build fits the driver, and torch uses the GPU that is here."""
    if versions.devices:
        names = ", ".join(device.name for device in versions.devices)
        return fine(f"torch uses {names}.")
    if isinstance(driver, NotSeen) and not nodes:
        return absent("There is no GPU that torch could use.")
    if not versions.cuda and not versions.rocm:
        return broken(
            "There is a GPU, but torch is built for the CPU only.",
            "Install torch's build for this driver: pytorch.org lists them under Get Started.",
        )
    if isinstance(driver, DriverState) and versions.cuda and driver.cuda[0] < release(versions.cuda)[0]:
        return broken(
            f"torch is built for CUDA {versions.cuda}, the driver runs CUDA up to "
            f"{version_text(driver.cuda)}.",
            f"Update the driver, or install torch's build for CUDA {driver.cuda[0]}.",
        )
    why = surroundings.why if isinstance(surroundings, NotSeen) else surroundings.gpu_problem
    return broken(
        f"There is a GPU, but torch cannot use it: {why.rstrip('.')}.",
        "Check CUDA_VISIBLE_DEVICES and the device files above; after an update of the driver, start the "
        "machine again.",
    )


def check_triton(versions: Versions) -> CheckOutcome:
    """Whether this Triton is one of those that are known here."""
    newest = release(history().releases[-1])[:2]
    if release(versions.triton) < OLDEST_TRITON:
        return broken(
            f"Triton {versions.triton} is too old.", f"Install Triton {version_text(OLDEST_TRITON)} or newer."
        )
    if release(versions.triton)[:2] > newest:
        return doubtful(
            f"Triton {versions.triton} is newer than {version_text(newest)}, the newest that is known here.",
            "Update this project; until then, names that it calls unknown may be new.",
        )
    return fine(
        f"Triton {versions.triton}; {version_text(OLDEST_TRITON)} to {version_text(newest)} are supported."
    )


def check_assembler(surroundings: Surroundings) -> CheckOutcome:
    """Whether Triton finds ptxas."""
    if not surroundings.assembler:
        return broken(
            "Triton finds no ptxas, so nothing can be compiled for NVIDIA GPUs.",
            "Install Triton again from its wheel, which has it, or name one with TRITON_PTXAS_PATH.",
        )
    return fine(f"{surroundings.assembler}.")


def check_miscompilations(versions: Versions) -> CheckOutcome:
    """Whether kernels are known to be compiled wrongly by these versions on the first GPU."""
    if not versions.devices or not versions.assemblers:
        return absent("There is no NVIDIA GPU that torch could use.")
    with_these = f"Triton {versions.triton} with ptxas {versions.assemblers[0].version}"
    where = f"on {versions.devices[0].name}"
    if not (known := concerning(versions)):
        return fine(f"{with_these} is not known to compile anything wrongly {where}.")
    what = "; ".join(f"{entry.name} ({entry.sources[0]})" for entry in known)
    fixes = dict.fromkeys(entry.avoid for entry in known)
    return doubtful(
        f"{with_these} may compile wrongly {where}: {what}.",
        f"Validate such kernels on this GPU: a wrong one is told from a wrong compiler. {' '.join(fixes)}",
    )


def check_compiler(surroundings: Surroundings, *, needed: bool) -> CheckOutcome:
    """Whether the stubs that launch kernels on a GPU can be built; `needed` where there is one."""
    if not surroundings.compiler_problem:
        return fine(f"{surroundings.compiler} can build the code that launches kernels.")
    seen = f"The code that launches kernels cannot be built: {surroundings.compiler_problem}."
    fix = "Install gcc and Python's headers (Debian: apt install gcc python3-dev)."
    return broken(seen, fix) if needed else absent(seen, f"It is needed only with a GPU. {fix}")


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
        no_gpu = how == "on the GPU"
        why = "torch has no GPU to run it on" if no_gpu else "the worker does not start"
        return absent(f"It was not tried: {why}.")
    if isinstance(trial, NotSeen):
        return broken(f"It does not work: {trial.why.rstrip('.')}.", trial.fix)
    what = f"{trial.seen} in {trial.seconds:.1f} s"
    if trial.seconds > _SLOW_SECONDS:
        return doubtful(f"It works, but slowly: {what}.", "Put Triton's cache and /tmp on a local disk.")
    return fine(f"{what[:1].upper()}{what[1:]}." if how == "compiled" else f"Ran {what}.")
