"""Red flags: what a reader must know before believing timings, or will want to fix."""

from collections.abc import Iterator, Sequence
from typing import get_args

from pytorch_to_triton.benchmark.figures import baselines, digits, is_not_slower, percent, size_of
from pytorch_to_triton.schema.benchmark import COMPILE, EAGER, KERNEL, MAX_AUTOTUNE, Conditions
from pytorch_to_triton.schema.timing import FlagKind, RedFlag, TimingTable

HALF = 0.5
"""Of the limit: a kernel below it has something to gain."""
LAUNCH_MS = 0.005
"""About what a launch costs: where the limit is below it, the call is launch more than work."""
FAR_ABOVE_LAUNCH_MS = 0.05
PAST_CACHES_BYTES = 2**28
"""What is moved by calls that no cache of today's GPUs holds."""
FASTER_THAN_WORK = 1.3
"""Times may grow by this much more than the work does."""
REDUCED = 0.97
"""Of the highest clock: a GPU at its power limit loses a step or two now and then, which changes nothing."""
NOISY = 0.1
"""Interquartile range over the median."""

SLOWER_THAN: dict[str, FlagKind] = {
    EAGER: "slower_than_eager",
    COMPILE: "slower_than_compile",
    MAX_AUTOTUNE: "slower_than_compile",
}
WORST_FIRST: tuple[FlagKind, ...] = get_args(FlagKind)


def add_flags(tables: Sequence[TimingTable]) -> tuple[TimingTable, ...]:
    """The tables, smallest first, with what their figures show; flags that they have already stay."""
    result = []
    for index, table in enumerate(tables):
        flags = [*table.flags, *slower(table), *below_half(table), *noisy(table)]
        if index:
            flags += grows_faster(tables[index - 1], table)
        result.append(table.model_copy(update={"flags": tuple(flags)}))
    return tuple(result)


def slower(table: TimingTable) -> Iterator[RedFlag]:
    """The kernel's interval lies above that of a baseline."""
    kernel = table.of(KERNEL)
    for other in baselines(table):
        if kernel and not is_not_slower(kernel.low_ms, other.high_ms):
            ratio = kernel.median_ms / other.median_ms
            yield RedFlag(
                kind=SLOWER_THAN.get(other.label, "slower_than_other"),
                label=KERNEL,
                message=f"The kernel takes {digits(kernel.median_ms)} ms, {ratio:.2f} times as long as "
                f"{other.label} ({digits(other.median_ms)} ms).",
            )


def below_half(table: TimingTable) -> Iterator[RedFlag]:
    """The kernel reaches less than half of the limit, where the launch does not dominate."""
    kernel, limit = table.of(KERNEL), table.limit
    if kernel and limit and limit.ms >= LAUNCH_MS and limit.ms / kernel.median_ms < HALF:
        yield RedFlag(
            kind="below_half_of_limit",
            label=KERNEL,
            message=f"The kernel reaches {percent(limit.ms / kernel.median_ms)} of the limit: it takes "
            f"{digits(kernel.median_ms)} ms, and {digits(limit.ms)} ms is possible ({limit.binds}-bound).",
        )


def noisy(table: TimingTable) -> Iterator[RedFlag]:
    """The samples of a callable lie far apart."""
    for timing in table.timings:
        if timing.spread > NOISY:
            yield RedFlag(
                kind="noisy",
                label=timing.label,
                message=f"The middle half of the times of {timing.label} spans "
                f"{percent(timing.spread)} of their median.",
            )


def grows_faster(smaller: TimingTable, larger: TimingTable) -> Iterator[RedFlag]:
    """From one size to the next, the kernel's time clearly grows faster than the limit.

    Nothing is reported where launches or caches dominate, or where dtypes differ.
    """
    before, now = smaller.of(KERNEL), larger.of(KERNEL)
    if not (before and now and _is_large(smaller) and _is_large(larger) and smaller.dtypes == larger.dtypes):
        return
    assert smaller.limit is not None
    assert larger.limit is not None
    work = larger.limit.ms / smaller.limit.ms
    if now.low_ms / before.high_ms > FASTER_THAN_WORK * work:
        yield RedFlag(
            kind="grows_faster_than_work",
            label=KERNEL,
            message=f"From {size_of(smaller)} to this size the kernel's time grows "
            f"{now.median_ms / before.median_ms:.2f} times and the limit {work:.2f} times.",
        )


def _is_large(table: TimingTable) -> bool:
    limit = table.limit
    past_caches = table.bytes_moved >= PAST_CACHES_BYTES or (limit is not None and limit.binds == "compute")
    return limit is not None and limit.ms >= FAR_ABOVE_LAUNCH_MS and past_caches


def of_conditions(conditions: Conditions) -> Iterator[RedFlag]:
    """What in the state of the device casts doubt on the whole run."""
    if conditions.throttled_by and not _kept_its_clock(conditions):
        yield RedFlag(kind="throttled", label="", message=_throttling(conditions))
    if conditions.other_processes:
        others = ", ".join(conditions.other_processes)
        yield RedFlag(
            kind="shared_device",
            label="",
            message=f"Other processes used the GPU: {others}. Their work may be included in these times.",
        )


def _kept_its_clock(conditions: Conditions) -> bool:
    """Whether the clock is known never to have been much below the highest."""
    low = conditions.sm_clock_mhz[0] if conditions.sm_clock_mhz else 0
    most = conditions.max_sm_clock_mhz
    return most is not None and low >= REDUCED * most


def _throttling(conditions: Conditions) -> str:
    clocks = ""
    if conditions.sm_clock_mhz:
        low, high = conditions.sm_clock_mhz
        most = f" of at most {conditions.max_sm_clock_mhz:,}" if conditions.max_sm_clock_mhz else ""
        clocks = f" It ran at {low:,} to {high:,}{most} MHz."
    return f"The GPU reduced its clocks while timing ({', '.join(conditions.throttled_by)}).{clocks}"


def all_flags(tables: Sequence[TimingTable], flags: Sequence[RedFlag]) -> list[tuple[str, RedFlag]]:
    """Those of the run and of the sizes, each with its size, the worst first."""
    pairs = [("", flag) for flag in flags]
    pairs += [(size_of(table), flag) for table in tables for flag in table.flags]
    return sorted(pairs, key=lambda pair: WORST_FIRST.index(pair[1].kind))


def flag_text(size: str, flag: RedFlag) -> str:
    """A flag with its size."""
    return f"at {size}: {flag.message}" if size else flag.message
