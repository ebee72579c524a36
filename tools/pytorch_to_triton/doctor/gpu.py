"""The driver, its device files, the GPUs and who uses them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytorch_to_triton.doctor.outcomes import CheckOutcome, NotSeen, absent, broken, doubtful, fine, gib

_PATTERNS = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "kfd", "dri/renderD*", "dxg", "nvmap")
_NEEDED_OF_NVIDIA = ("nvidiactl", "nvidia-uvm")
_NO_GPU = "There is nothing to do: kernels run under Triton's interpreter, and their speed is not measured."


@dataclass(frozen=True)
class DeviceNode:
    """A file in /dev by which programs reach a GPU."""

    path: str
    usable: bool
    """This user may read and write it."""


@dataclass(frozen=True)
class GpuState:
    """A GPU as NVML describes it."""

    name: str
    memory_bytes: int
    free_bytes: int
    persistent: bool | None
    """Whether the driver keeps it ready while nobody uses it; None: the driver does not say."""
    shared_by_processes: bool
    """Whether several processes may compute on it at once."""
    partitioned: bool
    """MIG is on."""
    processes: tuple[str, ...]
    """Who computes on it, as `python3 (1234), 512 MiB`."""


@dataclass(frozen=True)
class DriverState:
    """NVIDIA's driver."""

    version: str
    cuda: tuple[int, int]
    """The newest CUDA that it runs."""
    gpus: tuple[GpuState, ...]


def read_nodes() -> tuple[DeviceNode, ...]:
    """The device files of NVIDIA's and AMD's drivers; those of render nodes only beside AMD's."""
    paths = [path for pattern in _PATTERNS for path in sorted(Path("/dev").glob(pattern))]
    amd = any(path.name == "kfd" for path in paths)
    wanted = [path for path in paths if amd or path.parent.name != "dri"]
    return tuple(DeviceNode(str(path), os.access(path, os.R_OK | os.W_OK)) for path in wanted)


def read_driver() -> DriverState | NotSeen:
    """What NVML says; NotSeen with its reason where it says nothing."""
    try:
        import pynvml

        pynvml.nvmlInit()
        cuda = pynvml.nvmlSystemGetCudaDriverVersion()
        gpus = tuple(
            _gpu(pynvml, pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(pynvml.nvmlDeviceGetCount())
        )
        return DriverState(str(pynvml.nvmlSystemGetDriverVersion()), (cuda // 1000, cuda % 1000 // 10), gpus)
    except Exception as error:  # NVML's own kinds, a missing library, a missing package
        return NotSeen(f"{type(error).__name__.removeprefix('NVMLError_')}: {error}")


def _gpu(pynvml: Any, handle: Any) -> GpuState:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    mode = _ask(pynvml, lambda: pynvml.nvmlDeviceGetComputeMode(handle), 0)
    processes = _ask(pynvml, lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle), [])
    persistence = _ask(pynvml, lambda: pynvml.nvmlDeviceGetPersistenceMode(handle), None)
    return GpuState(
        name=str(pynvml.nvmlDeviceGetName(handle)),
        memory_bytes=memory.total,
        free_bytes=memory.free,
        persistent=None if persistence is None else bool(persistence),
        shared_by_processes=mode == pynvml.NVML_COMPUTEMODE_DEFAULT,
        partitioned=bool(_ask(pynvml, lambda: pynvml.nvmlDeviceGetMigMode(handle)[0], 0)),
        processes=tuple(
            f"{process_name(process.pid)} ({process.pid}), {gib(process.usedGpuMemory or 0)}"
            for process in processes
        ),
    )


def _ask(pynvml: Any, question: Any, otherwise: Any) -> Any:
    """What the driver answers; `otherwise` where this GPU or this user gets no answer."""
    try:
        return question()
    except pynvml.NVMLError:
        return otherwise


def process_name(pid: int) -> str:
    """Of a process; in a container, another's processes have none."""
    try:
        return Path("/proc", str(pid), "comm").read_text(encoding="utf-8").strip()
    except OSError:
        return "a process"


def check_driver(driver: DriverState | NotSeen, nodes: Sequence[DeviceNode]) -> CheckOutcome:
    """Whether NVIDIA's driver answers; AMD's is asked through torch alone."""
    if isinstance(driver, DriverState):
        major, minor = driver.cuda
        return fine(f"NVIDIA's driver {driver.version} runs CUDA up to {major}.{minor}.")
    if any(node.path.endswith("/kfd") for node in nodes):
        return fine("AMD's driver is loaded.")
    if any(node.path.startswith("/dev/nvidia") for node in nodes):
        return broken(
            f"NVIDIA's device files are here, but NVML does not answer ({driver.why}).",
            "Run nvidia-smi: after an update of the driver the machine must be started again, and a "
            "container must be started with its GPU libraries (--gpus all).",
        )
    return absent("No GPU driver is loaded.", _NO_GPU)


def check_nodes(nodes: Sequence[DeviceNode]) -> CheckOutcome:
    """Whether this user may use the device files."""
    if not nodes:
        return absent("There are no device files for a GPU in /dev.", _NO_GPU)
    if refused := [node.path for node in nodes if not node.usable]:
        return broken(
            f"This user may not read and write {', '.join(refused)}.",
            f"Join the group that owns them (ls -l {refused[0]}; often video or render), then log in again.",
        )
    names = {Path(node.path).name for node in nodes}
    missing = [name for name in _NEEDED_OF_NVIDIA if name not in names]
    if missing and any(name[6:].isdigit() for name in names if name.startswith("nvidia")):
        return broken(
            f"/dev/{missing[0]} is missing, although there is a GPU.",
            "Run nvidia-modprobe -u -c=0 as root, or start the container with --gpus all.",
        )
    return fine(f"{len(nodes)} device files may be read and written: {', '.join(sorted(names)[:4])}.")


def check_gpus(driver: DriverState | NotSeen) -> CheckOutcome:
    """Whether there is a GPU on which several processes may compute, as validate needs it."""
    if isinstance(driver, NotSeen) or not driver.gpus:
        return absent("NVML reports no GPU.", _NO_GPU)
    names = ", ".join(f"{gpu.name} with {gib(gpu.memory_bytes)}" for gpu in driver.gpus)
    if not all(gpu.shared_by_processes for gpu in driver.gpus):
        return broken(
            f"Only one process at a time may compute on a GPU here ({names}).",
            "Run nvidia-smi -c DEFAULT as root: kernel and reference run in processes of their own.",
        )
    if any(gpu.persistent is False for gpu in driver.gpus):
        return doubtful(
            f"Persistence mode is off ({names}): each start waits for the driver to load the GPU.",
            "Run nvidia-smi -pm 1 as root.",
        )
    if any(gpu.partitioned for gpu in driver.gpus):
        return doubtful(
            f"MIG is on ({names}): a part of a GPU is slower than its data sheet says.",
            "Use a whole GPU for benchmarks; leave it as it is for the rest.",
        )
    return fine(f"{names}.")


def check_others(driver: DriverState | NotSeen) -> CheckOutcome:
    """Whether anybody else computes on the GPUs."""
    if isinstance(driver, NotSeen) or not driver.gpus:
        return absent("There is no GPU that others could use.")
    busy = [process for gpu in driver.gpus for process in gpu.processes]
    free = min(gpu.free_bytes for gpu in driver.gpus)
    if busy:
        return doubtful(
            f"Other processes use the GPU: {'; '.join(busy[:3])}{' and more' if len(busy) > 3 else ''}.",
            "Wait for them before a benchmark: times measured beside others cannot be trusted.",
        )
    taken = max(gpu.memory_bytes - gpu.free_bytes for gpu in driver.gpus) / max(
        gpu.memory_bytes for gpu in driver.gpus
    )
    if taken > 0.1:
        return doubtful(
            f"Nobody is seen on the GPU, but only {gib(free)} of its memory are free.",
            "Look with nvidia-smi on the machine itself: from a container other containers are not seen.",
        )
    return fine(f"Nobody else computes on the GPU; {gib(free)} are free.")
