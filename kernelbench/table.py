"""The records as `table.md`, and as `rows.jsonl` with a row a problem: `python -m kernelbench.table OUT`."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernelbench.command import flat, table_row, write_again
from kernelbench.phases import MACHINE
from kernelbench.problems import in_order
from pytorch_to_triton.sweep.journal import Journal, Record

DENSE_CONVOLUTION = re.compile(r"conv_(standard|transposed)")
"""Level 1's convolutions that are the library's strength; depthwise and pointwise ones are not among them."""
DASH = "–"
NOT_DONE = "not done"
ALIKE = 0.98
"""Of torch.compile's speed: what two runs of the same code may differ by."""
FEW_BYTES = 1.15
MOST_NAMED = 8
WORST_FIRST = (
    "wrong",
    "failed",
    "crashed",
    "raised",
    "timed_out",
    "lost",
    "refused",
    "undecided",
    "too_large",
    "unrun",
)
HEAD = (
    "| problem | traced | drafted | kernels | launches | bytes over the least "
    "| calls left | ways | validated | checked "
    "| eager ms | compile ms | drafted ms | vs eager | vs compile | of the limit |"
)
RULE = "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Row:
    """What is known of one problem. Times are medians in milliseconds; None: not measured."""

    problem: str
    name: str
    traced: bool | None
    draft: str
    """`drafted`, or how drafting ended."""
    kernels: int
    launches: int | None
    """Of a call; None: not known."""
    times_least: float | None
    """The bytes that it moves over those that are needed; None: not known."""
    calls: tuple[str, ...]
    way: str
    """Who computes convolutions and products: the fastest where ways are timed."""
    validated: str
    """The worst status of all sizes and devices; `not done` where there is none for the current draft."""
    checked: str
    eager_ms: float | None
    compile_ms: float | None
    drafted_ms: float | None
    agrees: bool | None
    """Whether the timed draft's output was roughly eager's."""
    floor_ms: float | None
    """Inputs, parameters and outputs, moved once at the copy bandwidth."""
    why: str
    """What is wrong, or why it is not drafted."""

    @property
    def vs_eager(self) -> float | None:
        return ratio(self.eager_ms, self.drafted_ms)

    @property
    def vs_compile(self) -> float | None:
        return ratio(self.compile_ms, self.drafted_ms)

    @property
    def backward(self) -> bool:
        """Whether it was timed with its backward pass."""
        return self.problem.endswith("/backward")

    @property
    def share(self) -> float | None:
        """Of the limit that the memory sets."""
        return ratio(self.floor_ms, self.drafted_ms)


def ratio(over: float | None, under: float | None) -> float | None:
    return over / under if over is not None and under else None


def row_of(problem: str, journal: Journal) -> Row:
    """A problem's row; records about an earlier draft of it are left out."""
    draft = journal.of(problem, "draft", "") or {}
    ways = draft.get("ways") or {}
    current = [draft, *about_draft(journal, problem)]
    timing = next((r for r in current if r["phase"] == "time"), {})
    implementations = timing.get("implementations") or {}
    medians = {name: of.get("median_ms") for name, of in implementations.items()}
    checks = {phase: worst(r for r in current if r["phase"] == phase) for phase in ("validate", "check")}
    machine = journal.of(MACHINE, "machine", "device") or {}
    traffic = draft.get("traffic")
    floor = ratio(timing.get("bytes"), machine.get("copy_gb_per_s"))
    chosen = (implementations.get("drafted") or {}).get("way") or next(iter(ways), "")
    way = ways.get(chosen, {})
    errors = [f"{name}: {of['error']}" for name, of in implementations.items() if "error" in of]
    refusal = (draft.get("refusal") or {}).get("message")
    why = [refusal, draft.get("why"), *(r.get("why") for r in checks.values() if bad(r)), timing.get("why")]
    return Row(
        problem=problem,
        name=next((r["name"] for r in current if "name" in r), ""),
        traced=draft.get("traced"),
        draft=draft.get("status", NOT_DONE),
        kernels=len(way.get("kernels", ())),
        launches=len(traffic["launches"]) if traffic else None,
        times_least=ratio(traffic["bytes_moved"], traffic["least_bytes"]) if traffic else None,
        calls=tuple(way.get("calls", ())),
        way=chosen,
        validated=checks["validate"].get("status", NOT_DONE),
        checked=checks["check"].get("status", NOT_DONE),
        eager_ms=medians.get("eager"),
        compile_ms=medians.get("compile"),
        drafted_ms=medians.get("drafted"),
        agrees=(implementations.get("drafted") or {}).get("agrees"),
        floor_ms=floor / 1e6 if floor else None,
        why="; ".join(str(text) for text in [*why, *errors] if text),
    )


def worst(records: Iterable[Record]) -> Record:
    """The record with the worst status; empty where there is none."""
    ranks = {status: rank for rank, status in enumerate(WORST_FIRST)}
    return min(records, key=lambda r: ranks.get(r["status"], len(ranks)), default={})


def bad(record: Record) -> bool:
    return record.get("status") in WORST_FIRST


def markdown(title: str, rows: Sequence[Row], machine: Record) -> str:
    """The summary, the table, and what is wrong or not drafted, by name."""
    lines = [f"# {title}", ""]
    if machine:
        stack = f"{machine['device']}, torch {machine['torch']}, Triton {machine['triton']}"
        lines += [f"{stack}; a copy moves {machine['copy_gb_per_s']:,.0f} GB/s.", ""]
    lines += [*summary(rows), "", HEAD, RULE, *(line_of(row) for row in rows)]
    reasons = [f"- {row.problem} {row.name}: {flat(row.why)}" for row in rows if row.why]
    return "\n".join([*lines, *(["", "## What is behind it", "", *reasons] if reasons else [])]) + "\n"


def summary(rows: Sequence[Row]) -> list[str]:
    """How many are drafted, right and fast; geometric means where both sides were measured."""
    drafted = [r for r in rows if r.draft == "drafted"]
    timed = [r for r in rows if r.drafted_ms is not None]
    plain = [r for r in timed if r.problem.startswith("1/") and not DENSE_CONVOLUTION.search(r.name)]
    backward = [r for r in timed if r.backward]
    forward = [r for r in timed if not r.backward] if backward else []
    right = [r for r in rows if r.validated == "passed"]
    both = [r for r in right if r.checked == "wrong"]
    counts = {
        "traced": sum(r.traced is True for r in rows),
        "drafted": len(drafted),
        "drafted without a call of PyTorch": sum(not r.calls for r in drafted),
        "validated": len(right),
        "checked beside eager": sum(r.checked == "right" for r in rows),
        "validated and wrong": len(both),
    }
    lines = [f"- {name}: {count} of {len(rows)}" for name, count in counts.items()]
    if known := [r.times_least for r in drafted if r.times_least is not None]:
        few = sum(times <= FEW_BYTES for times in known)
        lines.append(f"- at most {FEW_BYTES} times the bytes that are needed: {few} of {len(known)}")
    if not timed:
        return lines
    slower = sorted((r.vs_eager, r.name) for r in timed if r.vs_eager is not None and r.vs_eager < 1)
    below = sorted((r.vs_compile, r.problem) for r in timed if r.vs_compile is not None and r.vs_compile < 1)
    return [
        *lines,
        f"- timed: {len(timed)}",
        f"- not slower than eager: {at_least(1, (r.vs_eager for r in timed))}",
        f"- not slower than torch.compile: {at_least(1, (r.vs_compile for r in timed))}",
        *means("all", timed),
        *means("level 1 without dense convolutions", plain),
        *means("forward", forward),
        *means("forward and backward", backward),
        f"- at least {ALIKE} of torch.compile: {at_least(ALIKE, (r.vs_compile for r in timed))}",
        "- furthest below torch.compile: " + (named(below[:MOST_NAMED]) or "none"),
        "- slower than eager: " + (named(slower) or "none"),
        "- timed and unlike eager: " + (", ".join(r.name for r in timed if r.agrees is False) or "none"),
    ]


def named(ratios: Sequence[tuple[float, str]]) -> str:
    return ", ".join(f"{name} ({ratio:.2f})" for ratio, name in ratios)


def at_least(least: float, ratios: Iterable[float | None]) -> str:
    known = [r for r in ratios if r is not None]
    return f"{sum(r >= least for r in known)} of {len(known)}"


def means(what: str, rows: Sequence[Row]) -> list[str]:
    """The geometric means over some rows, a line each."""
    by_name = {
        "eager": [r.vs_eager for r in rows],
        "torch.compile": [r.vs_compile for r in rows],
        "the faster of both": [ratio(faster(r), r.drafted_ms) for r in rows],
    }
    known = {name: [r for r in ratios if r is not None] for name, ratios in by_name.items()}
    return [
        f"- geometric mean against {name}, {what}: {math.exp(sum(map(math.log, r)) / len(r)):.3f} ({len(r)})"
        for name, r in known.items()
        if r
    ]


def faster(row: Row) -> float | None:
    return min((ms for ms in (row.eager_ms, row.compile_ms) if ms is not None), default=None)


def line_of(row: Row) -> str:
    cells = [
        f"{row.problem} {row.name.partition('_')[2]}" if row.name[:1].isdigit() else row.problem,
        {True: "yes", False: "no", None: DASH}[row.traced],
        "yes" if row.draft == "drafted" else row.draft,
        str(row.kernels or DASH),
        DASH if row.launches is None else str(row.launches),
        DASH if row.times_least is None else f"{row.times_least:.2f}",
        ", ".join(row.calls) or DASH,
        row.way or DASH,
        row.validated,
        row.checked,
        *(f"{ms:.4f}" if ms is not None else DASH for ms in (row.eager_ms, row.compile_ms, row.drafted_ms)),
        *(f"{r:.2f}" if r is not None else DASH for r in (row.vs_eager, row.vs_compile)),
        f"{row.share:.0%}" if row.share is not None else DASH,
    ]
    return table_row(cells)


def write_tables(out: Path, journal: Journal, title: str = "KernelBench") -> Path:
    """Write `table.md` and `rows.jsonl` into the folder; the path of the first."""
    rows = [row_of(problem, journal) for problem in recorded(journal)]
    computed = [
        {**asdict(r), "vs_eager": r.vs_eager, "vs_compile": r.vs_compile, "share": r.share} for r in rows
    ]
    out.mkdir(parents=True, exist_ok=True)
    (out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in computed), encoding="utf-8")
    machine = journal.of(MACHINE, "machine", "device") or {}
    (out / "table.md").write_text(markdown(title, rows, machine), encoding="utf-8")
    return out / "table.md"


def recorded(journal: Journal) -> list[str]:
    """The problems of which anything is known, in order."""
    return sorted((problem for problem in journal.items() if problem != MACHINE), key=in_order)


def about_draft(journal: Journal, problem: str) -> list[Record]:
    """The records of all phases that are about the problem's draft as it is now."""
    made = (journal.of(problem, "draft", "") or {}).get("made", "")
    return [r for r in journal.about(problem) if r["phase"] != "draft" and r.get("digest") == made]


if __name__ == "__main__":
    sys.exit(write_again(write_tables, __doc__))
