"""A sweep's results in one value: counts of states, how many are fast, and files to read on."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.sweep.outcome import STATES, ItemResult, State
from pytorch_to_triton.sweep.phases import PhaseName, geometric_mean

TIMES = (1.0, 1.2, 1.5, 2.0)
"""The p of fast_p: the share of items that are right and more than p times as fast (KernelBench, 2025)."""
Baseline = Literal["eager", "torch.compile", "the faster of both"]
GOOD: tuple[State, ...] = ("right", "done")
CHANGED = 1.1
"""A speed-up that differs by this factor between two sweeps is named."""
RESULTS = "results.jsonl"
NAMED = 10


class Speed(Value):
    """How fast the right ones are beside a baseline."""

    over: Baseline
    timed: int
    geometric_mean: float
    fast: dict[str, float]
    """fast_p by p: a share of all items."""


class ItemChange(Value):
    """An item that ended otherwise in another sweep."""

    key: str
    before: str
    after: str


class SweepComparison(Value):
    """This sweep beside an earlier one."""

    folder: Path
    items: int
    """That both have."""
    better: tuple[ItemChange, ...]
    worse: tuple[ItemChange, ...]
    speed: float | None
    """The geometric mean of kernel times, the earlier ones over these; None: none was measured in both."""


class SweepReport(Value):
    """What became of the items of a sweep."""

    summary: str
    next_step: str
    verdict: Literal["done", "not done"]
    """not done: some items are waiting."""
    where: str
    """The device, and the versions of torch and Triton."""
    phases: tuple[PhaseName, ...]
    states: dict[State, int]
    """How many items are in each state; they add up to all items."""
    cheats: dict[str, int]
    """What was refused as cheating, by kind."""
    speeds: tuple[Speed, ...]
    share_of_limit: float | None
    """The median of the right ones; None: not measured."""
    slowest: tuple[str, ...]
    """The right ones that are furthest behind the faster of eager and torch.compile."""
    not_right: tuple[str, ...]
    """The first items that are not right, with their states and why."""
    comparison: SweepComparison | None
    files: tuple[Path, ...]
    """What was written: the report, the page, and one line or row an item."""


def report_of(
    phases: Sequence[PhaseName], where: str, results: Sequence[ItemResult], before: "SweepComparison | None"
) -> SweepReport:
    """The results summed up."""
    states = {state: sum(r.state == state for r in results) for state in STATES}
    cheats = Counter(kind for r in results if r.state == "cheating" for kind in r.cheats)
    timed = sorted((r.speedup, r.key) for r in results if r.state == "right" and r.speedup is not None)
    shares = sorted(r.share_of_limit for r in results if r.state == "right" and r.share_of_limit is not None)
    return SweepReport(
        summary=summary_of(states, len(results)),
        next_step=next_step_of(states),
        verdict="not done" if states["waiting"] else "done",
        where=where,
        phases=tuple(phases),
        states={state: count for state, count in states.items() if count},
        cheats=dict(cheats.most_common()),
        speeds=tuple(speeds_of(results)),
        share_of_limit=shares[len(shares) // 2] if shares else None,
        slowest=tuple(f"{key} ({ratio:.2f})" for ratio, key in timed[:NAMED] if ratio < 1),
        not_right=tuple(line_of(result) for result in results if result.state not in GOOD)[:NAMED],
        comparison=before,
        files=(),
    )


def summary_of(states: Mapping[State, int], count: int) -> str:
    """`412 of 500 items are right, 60 wrong, 28 cheating.`"""
    parts = [f"{number} {state}" for state, number in states.items() if number]
    return f"Of {count} item{'s' * (count != 1)}: {', '.join(parts)}."


def next_step_of(states: Mapping[State, int]) -> str:
    if states["waiting"]:
        return "Run the same command again: it goes on where this one ended."
    if any(states[state] for state in ("timed out", "crashed", "untimed")):
        return "Try what failed once more with --again failed; give items longer with --seconds-per-item."
    return "Open sweep.html; results.jsonl has a line for each item."


def speeds_of(results: Sequence[ItemResult]) -> Iterable[Speed]:
    """One for each baseline that was measured."""
    right = [r for r in results if r.state == "right"]
    ratios: dict[Baseline, list[float | None]] = {
        "eager": [r.speedup_over_eager for r in right],
        "torch.compile": [r.speedup_over_compile for r in right],
        "the faster of both": [r.speedup for r in right],
    }
    for over, every in ratios.items():
        known = [ratio for ratio in every if ratio is not None]
        mean = geometric_mean(known)
        if mean is not None:
            fast = {f"{p:g}": sum(r > p for r in known) / len(results) for p in TIMES}
            yield Speed(over=over, timed=len(known), geometric_mean=mean, fast=fast)


def compared(results: Sequence[ItemResult], folder: Path) -> SweepComparison:
    """The results beside those of an earlier sweep. Raises BadInput where the folder holds none."""
    earlier = {result.key: result for result in read_results(folder)}
    both = [(earlier[r.key], r) for r in results if r.key in earlier]
    ratios = [b.kernel_ms / a.kernel_ms for b, a in both if b.kernel_ms and a.kernel_ms]
    changes = [(verdict, change) for b, a in both for verdict, change in [change_of(b, a)] if verdict]
    return SweepComparison(
        folder=folder,
        items=len(both),
        better=tuple(change for verdict, change in changes if verdict == "better"),
        worse=tuple(change for verdict, change in changes if verdict == "worse"),
        speed=geometric_mean(ratios),
    )


def change_of(before: ItemResult, after: ItemResult) -> tuple[Literal["better", "worse", ""], ItemChange]:
    """Whether an item is better or worse than it was: its state first, then its kernel's time."""
    change = ItemChange(key=after.key, before=shown(before), after=shown(after))
    good = (before.state in GOOD, after.state in GOOD)
    if good[0] != good[1]:
        return ("better" if good[1] else "worse"), change
    if before.kernel_ms and after.kernel_ms:
        ratio = before.kernel_ms / after.kernel_ms
        if max(ratio, 1 / ratio) > CHANGED:
            return ("better" if ratio > 1 else "worse"), change
    return "", change


def shown(result: ItemResult) -> str:
    return result.state + (f", {result.kernel_ms:.4f} ms" if result.kernel_ms else "")


def read_results(folder: Path) -> list[ItemResult]:
    """Raises BadInput where the folder holds no results of a sweep."""
    try:
        lines = (folder / RESULTS).read_text(encoding="utf-8").splitlines()
        return [ItemResult.model_validate_json(line) for line in lines]
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{folder} holds no results of a sweep: {error}.", "Name the results folder of a finished sweep."
        ) from error


def line_of(result: ItemResult) -> str:
    """`norms/rms_norm: wrong. ...`"""
    return f"{result.key}: {result.state}" + (f". {flat(result.why)}" if result.why else "")


def flat(text: str) -> str:
    """The text on one line."""
    return " ".join(text.split())
