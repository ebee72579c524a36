"""What profilers write: Nsight Compute's CSV (`--page raw --csv`), and Proton's tree of calls as JSON.

Formats: docs.nvidia.com/nsight-compute/NsightComputeCli, and triton/profiler of the Triton that wrote it.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytorch_to_triton.schema.profile import KernelProfile

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
