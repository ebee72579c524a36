"""Python, torch and Triton, and what they find around them."""

import re
from collections.abc import Sequence

from pytorch_to_triton.doctor.gpu import DeviceNode, DriverState
from pytorch_to_triton.doctor.outcomes import CheckOutcome, NotSeen, absent, broken, doubtful, fine
from pytorch_to_triton.hardware.miscompilations import concerning
from pytorch_to_triton.hardware.versions import Versions
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.triton_api.history import history

OLDEST_PYTHON, OLDEST_TORCH, OLDEST_TRITON = (3, 11), (2, 11), (3, 6)
_SET_UP = "Install torch and triton into it, or name a Python that has them with --python."


class Surroundings(Value):
    """What job `surroundings` answers."""

    gpu_problem: str
    """Why torch can use no GPU; empty where it can."""
    assembler: str
    """ptxas and its version; empty where Triton finds none."""
    compiler: str
    compiler_problem: str
    triton_cache: str


def numbers(version: str) -> tuple[int, int]:
    """Major and minor: (2, 11) of `2.11.0+cu128`."""
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def version_text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def check_python(versions: Versions | NotSeen, python: str) -> CheckOutcome:
    """Whether the worker starts there, torch and Triton import, and Python is new enough."""
    if isinstance(versions, NotSeen):
        why = versions.why.rstrip(".")
        return broken(f"The worker does not start in {python}: {why}.", versions.fix or _SET_UP)
    if numbers(versions.python) < OLDEST_PYTHON:
        return broken(
            f"{python} is Python {versions.python}.", f"Use Python {version_text(OLDEST_PYTHON)} or newer."
        )
    return fine(f"The worker starts in Python {versions.python} ({python}).")


def check_torch(versions: Versions | NotSeen) -> CheckOutcome:
    """Whether torch is new enough."""
    if isinstance(versions, NotSeen):
        return absent("It was not asked: the worker does not start.")
    if numbers(versions.torch) < OLDEST_TORCH:
        return broken(
            f"torch {versions.torch} is too old.", f"Install torch {version_text(OLDEST_TORCH)} or newer."
        )
    build = f"CUDA {versions.cuda}" if versions.cuda else f"ROCm {versions.rocm}" if versions.rocm else ""
    return fine(f"torch {versions.torch}, built for {build or 'the CPU alone'}.")


def check_torch_on_gpu(
    versions: Versions | NotSeen,
    surroundings: Surroundings | NotSeen,
    driver: DriverState | NotSeen,
    nodes: Sequence[DeviceNode],
) -> CheckOutcome:
    """Whether torch's build fits the driver, and torch uses the GPU that is here."""
    if isinstance(versions, NotSeen):
        return absent("It was not asked: the worker does not start.")
    if versions.devices:
        names = ", ".join(device.name for device in versions.devices)
        return fine(f"torch uses {names}.")
    if isinstance(driver, NotSeen) and not nodes:
        return absent("There is no GPU that torch could use.")
    if not versions.cuda and not versions.rocm:
        return broken(
            "There is a GPU, but torch is built for the CPU alone.",
            "Install torch's build for this driver: pytorch.org lists them under Get Started.",
        )
    if isinstance(driver, DriverState) and versions.cuda and driver.cuda[0] < numbers(versions.cuda)[0]:
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


def check_triton(versions: Versions | NotSeen) -> CheckOutcome:
    """Whether this Triton is one of those that are known here."""
    if isinstance(versions, NotSeen):
        return absent("It was not asked: the worker does not start.")
    newest = numbers(history().releases[-1])
    if numbers(versions.triton) < OLDEST_TRITON:
        return broken(
            f"Triton {versions.triton} is too old.", f"Install Triton {version_text(OLDEST_TRITON)} or newer."
        )
    if numbers(versions.triton) > newest:
        return doubtful(
            f"Triton {versions.triton} is newer than {version_text(newest)}, the newest that is known here.",
            "Update this project; until then, names that it calls unknown may be new.",
        )
    return fine(
        f"Triton {versions.triton}; {version_text(OLDEST_TRITON)} to {version_text(newest)} are supported."
    )


def check_assembler(surroundings: Surroundings | NotSeen) -> CheckOutcome:
    """Whether Triton finds ptxas."""
    if isinstance(surroundings, NotSeen):
        return absent("It was not asked: the worker does not start.")
    if not surroundings.assembler:
        return broken(
            "Triton finds no ptxas, so nothing is compiled for NVIDIA's GPUs.",
            "Install Triton again from its wheel, which has it, or name one with TRITON_PTXAS_PATH.",
        )
    return fine(f"{surroundings.assembler}.")


def check_miscompilations(versions: Versions | NotSeen) -> CheckOutcome:
    """Whether kernels are known to be compiled wrongly by these versions on the first GPU."""
    if isinstance(versions, NotSeen):
        return absent("It was not asked: the worker does not start.")
    if not versions.devices or not versions.assemblers:
        return absent("There is no GPU of NVIDIA's that torch could use.")
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


def check_compiler(surroundings: Surroundings | NotSeen, *, needed: bool) -> CheckOutcome:
    """Whether the stubs that launch kernels on a GPU can be built; `needed` where there is one."""
    if isinstance(surroundings, NotSeen):
        return absent("It was not asked: the worker does not start.")
    if not surroundings.compiler_problem:
        return fine(f"{surroundings.compiler} builds what launches a kernel.")
    seen = f"What launches a kernel cannot be built: {surroundings.compiler_problem}."
    fix = "Install gcc and Python's headers (Debian: apt install gcc python3-dev)."
    return broken(seen, fix) if needed else absent(seen, f"Only a GPU needs it. {fix}")
