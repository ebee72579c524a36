"""A call of a target under a profiler, on a real GPU: Nsight Compute's counters, or Proton's times.

Options of ncu: docs.nvidia.com/nsight-compute/NsightComputeCli.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement, Refusal
from pytorch_to_triton.hardware.versions import Device
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.device_lock import device_lock
from pytorch_to_triton.jobs.environment import job_environment
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.profilers.profiler_reports import METRICS, complaint, parse_ncu, parse_proton
from pytorch_to_triton.profilers.tool_process import find_tool, run_tool, text_of, worker_command
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.profile import Profile, Profiler
from pytorch_to_triton.targets.describe import refusal_of_failure

NAME = "ncu"
REPORT = "ncu.csv"
"""What the tool wrote, in the run folder."""
OPTIONS = (
    "--target-processes", "application-only",
    "--profile-from-start", "off",  # the worker says when: after compilation and autotuning
    "--clock-control", "none",  # otherwise it locks the clocks, and times are not those that users see
    "--metrics", ",".join(METRICS),
    "--page", "raw",
    "--csv",
    "--print-units", "base",
    "--print-kernel-base", "function",
    "--launch-count", "200",
)  # fmt: skip
INSTALLED = ("/opt/nvidia/nsight-compute/*/ncu", "/usr/local/cuda/nsight-compute*/ncu")
NO_PERMISSION = "ERR_NVGPUCTRPERM"


def require(profiler: Profiler, device: Device | None) -> None:
    """Raises MissingRequirement where this machine cannot profile with it."""
    if device is None:
        what = (
            "Nsight Compute reads the counters of a GPU"
            if profiler == NAME
            else "Proton times kernels on a GPU"
        )
        raise MissingRequirement(
            f"{what}, and this machine has none that torch can use.",
            "Leave out `profile`: what the compiler made of the kernels needs no GPU.",
        )
    if profiler == NAME and find_ncu() is None:
        raise MissingRequirement(
            "Nsight Compute (ncu) is not installed.",
            "Install it with the CUDA toolkit or as the package nsight-compute, or put ncu on PATH; "
            'profile="proton" needs nothing but Triton.',
        )


def find_ncu() -> Path | None:
    """The tool on PATH, else in CUDA's folders; None where there is none."""
    installed = [path for pattern in INSTALLED for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    return find_tool(NAME) or (installed[-1] if installed else None)


async def run_profiler(
    worker: WorkerClient,
    profiler: Profiler,
    call: Mapping[str, object],
    runtime: Runtime,
    *,
    seconds: float,
    listener: ProgressListener | None = None,
) -> Profile:
    """Call a target under `profiler`, alone on the device; `call` is what it is called with.

    Raises MissingRequirement where the profiler cannot work, TargetBroken where the call raises.
    """
    job = Job(kind="profile", arguments={**call, "profiler": profiler})
    async with device_lock("cuda-0", listener):
        if profiler == NAME:
            return await _under_ncu(job, runtime, seconds)
        outcome = await worker.ask(job, runtime, seconds=seconds, listener=listener)
    answer = _answer(outcome)
    return Profile(
        profiler=profiler,
        device=answer["device"],
        provenance=f"measured: by Proton, over {answer['calls']} calls after a warm-up",
        kernels=parse_proton(answer["tree"]),
    )


async def _under_ncu(job: Job, runtime: Runtime, seconds: float) -> Profile:
    program = find_ncu()
    assert program is not None, "require() comes first"
    folders = RunFolders(places.runs())
    await anyio.to_thread.run_sync(folders.make_room)
    with folders.new(job, runtime) as folder:
        report = folder / REPORT
        command = [str(program), *OPTIONS, "--log-file", str(report), *worker_command(runtime, folder)]
        outcome, _ = await run_tool(command, folder, _environment(runtime), seconds=seconds)
        kernels = parse_ncu(text_of(report))
        if not kernels:
            raise _why_nothing_was_measured(text_of(report), outcome)
        answer = _answer(outcome)
    return Profile(
        profiler=NAME,
        device=answer["device"],
        provenance="measured: by Nsight Compute, one call after a warm-up, caches flushed, clocks not locked",
        kernels=kernels,
    )


def _environment(runtime: Runtime) -> dict[str, str]:
    devices = {} if runtime.devices is None else {"CUDA_VISIBLE_DEVICES": runtime.devices}
    return {**job_environment(), **devices, "LC_ALL": "C"}  # numbers in the table follow the locale


def _answer(outcome: Outcome) -> dict[str, Any]:
    if outcome.failure is not None:
        raise refusal_of_failure(outcome.failure)
    if outcome.answer is None:
        raise MissingRequirement(
            f"Profiling failed during {outcome.during or 'start'}: {outcome.detail}.",
            f"The log is in {outcome.folder}.",
        )
    return outcome.answer


def _why_nothing_was_measured(report: str, outcome: Outcome) -> Refusal:
    said = complaint(report) or complaint(outcome.log)
    if NO_PERMISSION in said + outcome.log:
        return MissingRequirement(
            "This user may not read the GPU's performance counters (ERR_NVGPUCTRPERM).",
            "Let an administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0, run as root, "
            "or give the container CAP_SYS_ADMIN.",
        )
    if outcome.failure is not None:
        return refusal_of_failure(outcome.failure)
    why = said or (outcome.detail if outcome.answer is None else "the call launched no kernel")
    return MissingRequirement(f"Nsight Compute measured nothing: {why}.", f"The log is in {outcome.folder}.")
