"""A call of a target under a profiler, on a real GPU: Nsight Compute's counters, or Proton's times.

Options of ncu: docs.nvidia.com/nsight-compute/NsightComputeCli.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement, Refusal
from pytorch_to_triton.hardware.versions import Device
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.device_lock import device_lock, device_of
from pytorch_to_triton.jobs.fork_server import job_environment
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.run_folder import RunFolders
from pytorch_to_triton.profilers.tool_process import find_tool, run_tool, text_of, worker_command
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.profile import KernelProfile, Profile, Profiler
from pytorch_to_triton.targets.describe import refusal_of_failure

TIME = "gpu__time_duration.sum"
DRAM_BYTES = (
    "dram__bytes_read.sum", "dram__bytes_write.sum", "dram__bytes_op_read.sum", "dram__bytes_op_write.sum",
)  # fmt: skip
"""The second pair is what later GPUs call the first."""
DRAM_SHARE = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
REGISTERS = "launch__registers_per_thread"
TENSOR = (
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
)
"""By GPU; the first that is known counts."""
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALL_REASONS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
    "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction",
    "not_selected", "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
METRICS = (
    TIME, *DRAM_BYTES, DRAM_SHARE, OCCUPANCY, REGISTERS, *TENSOR,
    *(STALL.format(reason) for reason in STALL_REASONS),
)  # fmt: skip
SCALES = {
    "ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3,
    "s": 1e6, "second": 1e6,
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9,
}  # fmt: skip
"""To microseconds and bytes; other units are left as they are."""

Measured = Mapping[str, float]
"""Values by metric: microseconds, bytes, and the tool's own percentages and ratios."""
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


def parse_ncu(text: str) -> tuple[KernelProfile, ...]:
    """The kernels of a report, launches of one name together, longest first. Empty for no kernels."""
    launches: dict[str, list[Measured]] = {}
    for name, measured in _launches(text):
        launches.setdefault(name, []).append(measured)
    return _longest_first(_of_launches(name, measured) for name, measured in launches.items())


def parse_proton(tree: Sequence[Mapping[str, Any]]) -> tuple[KernelProfile, ...]:
    """The kernels in Proton's tree (a list of nodes, then devices), longest first."""
    totals: dict[str, dict[str, float]] = {}
    for node in tree:
        for name, metrics in _leaves(node):
            kernel = totals.setdefault(name, {"time": 0.0, "count": 0.0, "flops": 0.0, "bytes": 0.0})
            kernel["time"] += float(metrics["time (ns)"])
            kernel["count"] += float(metrics.get("count", 1))
            kernel["flops"] += sum(float(v) for k, v in metrics.items() if k.startswith("flops"))
            kernel["bytes"] += float(metrics.get("bytes", 0))
    return _longest_first(
        KernelProfile(
            name=name,
            launches=int(kernel["count"]),
            microseconds=kernel["time"] / 1e3,
            flops=kernel["flops"] or None,
            bytes_moved=kernel["bytes"] or None,
        )
        for name, kernel in totals.items()
    )


def complaint(text: str) -> str:
    """What ncu says went wrong; empty where it says nothing."""
    errors = [
        line.removeprefix("==ERROR==").strip() for line in text.splitlines() if line.startswith("==ERROR==")
    ]
    return " ".join(errors)


def _launches(text: str) -> Iterator[tuple[str, Measured]]:
    """Name and metrics of each launch; other output of the tool is skipped."""
    rows = [line for line in text.splitlines() if line.startswith('"')]
    table = csv.reader(rows)
    header = next(table, [])
    units = dict(zip(header, next(table, []), strict=False))
    for row in table:
        cells = dict(zip(header, row, strict=False))
        values = ((name, _number(cells.get(name, ""), units.get(name, ""))) for name in METRICS)
        yield cells.get("Kernel Name", ""), {name: value for name, value in values if value is not None}


def _number(cell: str, unit: str) -> float | None:
    """None for `n/a`: this GPU has no such counter."""
    try:
        return float(cell.replace(",", "")) * SCALES.get(unit, 1.0)
    except ValueError:
        return None


def _of_launches(name: str, launches: Sequence[Measured]) -> KernelProfile:
    microseconds = sum(launch.get(TIME, 0.0) for launch in launches)
    moved = [launch[metric] for launch in launches for metric in DRAM_BYTES if metric in launch]
    share, occupancy = (_mean(launches, metric) for metric in (DRAM_SHARE, OCCUPANCY))
    tensor = next((mean for metric in TENSOR if (mean := _mean(launches, metric)) is not None), None)
    stalls = {reason: _mean(launches, STALL.format(reason)) for reason in STALL_REASONS}
    present = {reason: ratio for reason, ratio in stalls.items() if ratio}
    return KernelProfile(
        name=name,
        launches=len(launches),
        microseconds=microseconds,
        dram_bytes=round(sum(moved)) if moved else None,
        dram_gbytes_per_s=sum(moved) / microseconds / 1e3 if moved and microseconds else None,
        dram_share=None if share is None else share / 100,
        achieved_occupancy=None if occupancy is None else occupancy / 100,
        registers=max((int(launch[REGISTERS]) for launch in launches if REGISTERS in launch), default=None),
        tensor_share=None if tensor is None else tensor / 100,
        stalls=dict(sorted(present.items(), key=lambda pair: -pair[1])),
    )


def _mean(launches: Iterable[Measured], metric: str) -> float | None:
    """Weighted by time; None where no launch has the metric."""
    pairs = [(launch[metric], launch.get(TIME, 0.0)) for launch in launches if metric in launch]
    total = sum(time for _, time in pairs)
    if not pairs:
        return None
    return sum(value * time for value, time in pairs) / total if total else pairs[0][0]


def _leaves(node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and metrics of each node that has a time of its own."""
    metrics = node.get("metrics", {})
    children = node.get("children", ())
    if "time (ns)" in metrics and not children:
        yield str(node["frame"]["name"]), metrics
    for child in children:
        yield from _leaves(child)


def _longest_first(kernels: Iterable[KernelProfile]) -> tuple[KernelProfile, ...]:
    return tuple(sorted(kernels, key=lambda kernel: -kernel.microseconds))


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
    async with device_lock(device_of(runtime), listener):
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
