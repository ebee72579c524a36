"""The verdict on all figures and flags of a benchmark, its summary and its next step."""

from collections.abc import Iterable, Sequence
from statistics import geometric_mean
from typing import Literal

from pytorch_to_triton.benchmark.figures import baselines, percent, size_of
from pytorch_to_triton.benchmark.flags import SLOWER_THAN, all_flags, flag_text
from pytorch_to_triton.schema.benchmark import EAGER, KERNEL
from pytorch_to_triton.schema.timing import FlagKind, RedFlag, Timing, TimingTable

Verdict = Literal["faster", "slower", "void", "estimated"]

SLOWER = frozenset({*SLOWER_THAN.values(), "slower_than_other"})
UNTRUSTED = frozenset({"wrong_outputs", "clock_disagrees", "settings_changed"})
"""Of the kernel: what it computes or claims is not what was asked for."""

NEXT_STEPS: dict[FlagKind, str] = {
    "wrong_outputs": "Run `validate` on it: its results were wrong while it was timed.",
    "clock_disagrees": "Launch everything on the current stream and do not touch clocks, then measure again.",
    "settings_changed": "Remove what changes the process's settings, then measure again.",
    "not_checked": "Run `validate` on it, or measure smaller sizes: its results were not checked.",
    "throttled": "Measure again when the GPU is not throttled, or compare only within this run.",
    "shared_device": "Measure again when nothing else runs on the device.",
    "noisy": "Measure again on a quiet device before acting on small differences.",
    "slower_than_eager": "Tune the kernel at the sizes where eager PyTorch is faster.",
    "slower_than_compile": "Tune the kernel at the sizes where torch.compile is faster.",
    "slower_than_other": "Tune the kernel at the sizes where another implementation is faster.",
    "below_half_of_limit": "Look at the sizes below half of the limit: does it read too much, or wait?",
    "grows_faster_than_work": "Look at the larger sizes: do registers spill, or are there too few programs?",
}


def verdict_of(tables: Sequence[TimingTable], flags: Sequence[RedFlag]) -> Verdict:
    """Void where the kernel's figures cannot be trusted, or there is nothing to compare; a device that is
    shared or throttled treats all callables alike, and does not void."""
    if not any(table.timings or table.failed for table in tables):
        return "estimated"
    every_flag = [flag for _, flag in all_flags(tables, flags)]
    if any(flag.kind in UNTRUSTED and flag.label in ("", KERNEL) for flag in every_flag):
        return "void"
    if not all(table.of(KERNEL) for table in tables) or not any(baselines(table) for table in tables):
        return "void"
    return "slower" if any(flag.kind in SLOWER for flag in every_flag) else "faster"


def summary_of(kernel: str, tables: Sequence[TimingTable], flags: Sequence[RedFlag]) -> str:
    """How much faster, how near to the limit, and the worst of what is wrong."""
    problem = _worst(all_flags(tables, flags))
    if verdict_of(tables, flags) == "void":
        return f"{kernel} cannot be judged from these figures. {_why_void(tables) or problem}"
    parts = [_against(tables, EAGER), _against_best(tables), _near_limit(tables)]
    text = "; ".join(filter(None, parts))
    return f"{kernel} on {tables[0].device}: {text}. {problem}".rstrip()


def _worst(flags: Sequence[tuple[str, RedFlag]]) -> str:
    """How many flags there are, and the first of them; empty where there is none."""
    if not flags:
        return ""
    count = f"{len(flags)} red flags, the worst" if len(flags) > 1 else "1 red flag"
    size, flag = flags[0]
    return f"{count} {flag_text(size, flag)}" if size else f"{count}: {flag.message}"


def next_step_of(kernel: str, tables: Sequence[TimingTable], flags: Sequence[RedFlag]) -> str:
    """What to do about the worst flag."""
    ranked = all_flags(tables, flags)
    if _why_void(tables):
        return f"Make `run` and the reference work at these sizes; `validate {kernel}` shows what fails."
    if not ranked:
        return f"Use `run` of {kernel} in place of the PyTorch function."
    return NEXT_STEPS[ranked[0][1].kind]


def _why_void(tables: Sequence[TimingTable]) -> str:
    """What could not be timed."""
    for table in tables:
        if table.of(KERNEL) is None:
            return f"At {size_of(table)} it could not be timed: {table.failed.get(KERNEL, 'it was not run')}."
    failed = next((why for table in tables for why in table.failed.values()), "none was run")
    if not any(baselines(table) for table in tables):
        return f"There is no baseline to compare it with: {failed}."
    return ""


def best_baseline(table: TimingTable) -> Timing | None:
    """The fastest callable but the kernel."""
    return min(baselines(table), key=lambda timing: timing.median_ms, default=None)


def _against(tables: Sequence[TimingTable], label: str) -> str:
    timed = [(table.of(KERNEL), table.of(label)) for table in tables]
    return _mean_and_range(timed, f"{label} PyTorch") or f"{label} PyTorch was not measured"


def _against_best(tables: Sequence[TimingTable]) -> str:
    timed = [(table.of(KERNEL), best_baseline(table)) for table in tables]
    if all(best is None or best.label == EAGER for _, best in timed):
        return ""
    return _mean_and_range(timed, "the best baseline")


def _mean_and_range(timed: Iterable[tuple[Timing | None, Timing | None]], other: str) -> str:
    """How many times as long as the kernel something else takes, size by size where both were timed."""
    ratios = [baseline.median_ms / kernel.median_ms for kernel, baseline in timed if kernel and baseline]
    if not ratios:
        return ""
    text = f"{geometric_mean(ratios):.2f} times as fast as {other}"
    if len(ratios) == 1:
        return text
    return f"{text} (geometric mean of {len(ratios)} sizes, {min(ratios):.2f} to {max(ratios):.2f})"


def _near_limit(tables: Sequence[TimingTable]) -> str:
    limited = [(table.limit, kernel) for table in tables if table.limit and (kernel := table.of(KERNEL))]
    if not limited:
        return "share of the limit unknown"
    shares = sorted(limit.ms / kernel.median_ms for limit, kernel in limited)
    least, most = percent(shares[0]), percent(shares[-1])
    reached = most if least == most else f"{least} to {most}"
    bounds = " or ".join(sorted({f"{limit.binds}-bound" for limit, _ in limited}))
    return f"{reached} of the limit ({bounds})"
