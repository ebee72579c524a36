"""A benchmark without a device: the least times that follow from a GPU's data sheet."""

from collections.abc import Sequence

from pytorch_to_triton.benchmark.figures import PASSES, digits, size_of
from pytorch_to_triton.benchmark.flags import LAUNCH_MS
from pytorch_to_triton.benchmark.request import BenchmarkRequest
from pytorch_to_triton.benchmark.roofline import limit_of, precision_of
from pytorch_to_triton.hardware.datasheets import DataSheet
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.schema.benchmark import Benchmark
from pytorch_to_triton.schema.timing import MinimalWork, Roofline, TimingTable


def estimate_speed(
    request: BenchmarkRequest, sheet: DataSheet, sizes: Sequence[tuple[Case, MinimalWork]]
) -> Benchmark:
    """The limit of each case and its work from the data sheet; no timings, for nothing is run."""
    tables = [
        TimingTable(
            device=sheet.name,
            dims=case.dims,
            dtypes=case.dtypes,
            bytes_moved=work.bytes_moved,
            timings=(),
            failed={},
            work=work,
            limit=limit_of(work, sheet.ceilings, tf32=request.tf32),
        )
        for case, work in sorted(sizes, key=lambda size: size[1].bytes_moved)
    ]
    what = f"{request.candidate} on {sheet.name} ({PASSES[request.passes]})"
    return Benchmark(
        summary=f"{what}, estimated from its data sheet: {_least_times(tables)}.",
        next_step="Run the same command without estimate on a machine with this GPU to measure it.",
        verdict="estimated",
        kernel=str(request.candidate),
        device=f"{sheet.name} ({sheet.arch}); nothing was run",
        passes=request.passes,
        precision=precision_of(tf32=request.tf32),
        provenance=f"estimated from the {sheet.ceilings.source}; no copy reaches its memory bandwidth",
        tables=tuple(tables),
        flags=(),
        ceilings=sheet.ceilings,
        conditions=None,
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
