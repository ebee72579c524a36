"""A benchmark without a device: the least times that follow from a GPU's data sheet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytorch_to_triton.benchmark.figures import PASSES, digits, size_of
from pytorch_to_triton.benchmark.flags import LAUNCH_MS
from pytorch_to_triton.benchmark.roofline import limit_of, precision_of
from pytorch_to_triton.hardware.datasheets import DataSheet
from pytorch_to_triton.schema.benchmark import Benchmark, Passes
from pytorch_to_triton.schema.timing import MinimalWork, Roofline, TimingTable


@dataclass(frozen=True)
class EstimatedSize:
    """Dims and dtypes by name, and what there is to do."""

    dims: Mapping[str, int]
    dtypes: Mapping[str, str]
    work: MinimalWork


@dataclass(frozen=True)
class EstimateSetting:
    """What would be timed, and how."""

    kernel: str
    passes: Passes
    tf32: bool
    replay: str


def estimate_speed(setting: EstimateSetting, sheet: DataSheet, sizes: Sequence[EstimatedSize]) -> Benchmark:
    """The limit at each size from the data sheet; no timings, for nothing is run."""
    ordered = sorted(sizes, key=lambda size: size.work.bytes_moved)
    tables = [table_of(sheet, size, tf32=setting.tf32) for size in ordered]
    what = f"{setting.kernel} on {sheet.name} ({PASSES[setting.passes]})"
    return Benchmark(
        summary=f"{what}, estimated from its data sheet: {_least_times(tables)}.",
        next_step="Run the same command without estimate on a machine with this GPU to measure it.",
        verdict="estimated",
        kernel=setting.kernel,
        device=f"{sheet.name} ({sheet.arch}); nothing was run",
        passes=setting.passes,
        precision=precision_of(tf32=setting.tf32),
        provenance=f"estimated from the {sheet.ceilings.source}; no copy reaches its memory bandwidth",
        tables=tuple(tables),
        flags=(),
        ceilings=sheet.ceilings,
        conditions=None,
        replay=setting.replay,
    )


def table_of(sheet: DataSheet, size: EstimatedSize, *, tf32: bool) -> TimingTable:
    """One size."""
    return TimingTable(
        device=sheet.name,
        dims=dict(size.dims),
        dtypes=dict(size.dtypes),
        bytes_moved=size.work.bytes_moved,
        timings=(),
        failed={},
        work=size.work,
        limit=limit_of(size.work, sheet.ceilings, tf32=tf32),
    )


def _least_times(tables: Sequence[TimingTable]) -> str:
    """At the smallest and the largest size."""
    known = [(size_of(table), table.limit) for table in tables if table.limit]
    if not known:
        return "no limit is known, because the sheet has no rate for these dtypes"
    ends = known if len(known) == 1 else (known[0], known[-1])
    return "any kernel takes at least " + ", and at least ".join(_least_time(*end) for end in ends)


def _least_time(size: str, limit: Roofline) -> str:
    if limit.ms < LAUNCH_MS:
        return f"a launch (a few microseconds) at {size}"
    return f"{digits(limit.ms)} ms (estimated, {limit.binds}-bound) at {size}"
