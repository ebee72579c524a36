"""What became of problems, in one table: how many in each state, and the reasons by count."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelbench.command import table_row
from kernelbench.table import about_draft, recorded
from pytorch_to_triton.sweep.journal import FAILED, Journal, Record

SLOW_SECONDS = 20.0
"""A draft should not take longer."""
STATES = {
    "wrong": "its results are not PyTorch's",
    "crashed": "an exception, or a defect that left something to PyTorch",
    "too slow": f"drafting took over {SLOW_SECONDS:g} s",
    "refused": "not traced, or nothing that can be drafted",
    "left to PyTorch": "traced, and no kernel drafted",
    "in parts": "kernels, with calls of PyTorch between them",
    "undecided": "drafted, and not compared",
    "unrun": "PyTorch itself raises on this device",
    "computes nothing": "a view of what it is given",
    "drafted": "kernels alone, with PyTorch's results",
}
"""The worst first: several problems of one kind are in the worst state of all."""
LEFT = re.compile(r"`([\w.]+)`(?: \(line \d+\))?: ([^;]+)")
"""A call of PyTorch, and why it stays one, as `convert` says it."""
NUMBERS = re.compile(r"\d+")
PATH = re.compile(r"/\S+\.py")
QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"")
NOTHING = "it computes nothing"
RAISES = re.compile(r"raises on its declared inputs|Calling the target raised")
DEFECT = "a defect of pytorch-to-triton"


@dataclass(frozen=True)
class Outcome:
    """What became of a problem."""

    problem: str
    name: str
    state: str
    """One of STATES."""
    reasons: tuple[str, ...]
    seconds: float | None
    """To trace and draft it; None where that was not done."""


def outcome_of(problem: str, journal: Journal) -> Outcome | None:
    """The outcome of a problem; None where it was not drafted yet."""
    draft = journal.of(problem, "draft", "")
    if draft is None:
        return None
    compared = [r for r in about_draft(journal, problem) if r["phase"] in ("check", "validate")]
    state, reasons = state_of(draft, compared)
    return Outcome(problem, str(draft["name"]), state, tuple(reasons), draft.get("seconds"))


def state_of(draft: Record, compared: Sequence[Record]) -> tuple[str, Sequence[str]]:
    """The state of a problem, and what kept it from being drafted whole."""
    if draft["status"] in FAILED:
        state = "too slow" if draft["status"] == "timed_out" else "crashed"
        return state, [general(str(draft["why"]))]
    if draft["status"] != "drafted":
        message = str((draft.get("refusal") or {}).get("message") or draft.get("why"))
        if RAISES.search(message):
            return "unrun", [general(message)]
        reasons = left_in(message)
        if NOTHING in message:
            return "computes nothing", []
        state = "left to PyTorch" if reasons else "refused"
        return ("crashed" if DEFECT in message else state), reasons or [general(message)]
    best = min(draft["ways"].values(), key=lambda way: len(way["calls"]))
    reasons = [reason for text in best["left"] for reason in left_in(text)]
    for record in compared:
        if record["status"] in ("wrong", "failed"):
            return "wrong", [general(str(record["why"]))]
    if unrun := [general(str(r["why"])) for r in compared if r["status"] == "unrun"]:
        return "unrun", unrun
    if any(r["status"] in FAILED - {"timed_out"} for r in compared):
        return "crashed", [general(str(r["why"])) for r in compared]
    if any(DEFECT in reason for reason in reasons):
        return "crashed", reasons
    if draft["seconds"] > SLOW_SECONDS:
        return "too slow", []
    if best["calls"]:
        return "in parts", reasons
    decided = any(r["status"] in ("right", "passed") for r in compared)
    return ("drafted", []) if decided else ("undecided", [general(str(r["why"])) for r in compared])


def left_in(text: str) -> list[str]:
    """The calls of PyTorch that the text names, each with why."""
    return [f"`{operator}`: {why.strip().rstrip('.')}" for operator, why in LEFT.findall(text)]


def general(text: str) -> str:
    """The first line without what differs from problem to problem."""
    line = text.strip().partition("\n")[0]
    return NUMBERS.sub("N", QUOTED.sub("…", PATH.sub("…", line)))[:160]


def worst_of(outcomes: Iterable[Outcome], unit: Callable[[str], str]) -> Mapping[str, Outcome]:
    """The worst outcome of the problems of each unit."""
    ranks = list(STATES)
    worst: dict[str, Outcome] = {}
    for outcome in outcomes:
        name = unit(outcome.problem)
        if name not in worst or ranks.index(outcome.state) < ranks.index(worst[name].state):
            worst[name] = outcome
    return worst


def markdown(title: str, outcomes: Sequence[Outcome], unit: Callable[[str], str]) -> str:
    """The table of states, how long drafting took, the reasons by count, and what is in each bad state."""
    worst = worst_of(outcomes, unit)
    by_state: dict[str, list[str]] = defaultdict(list)
    for name, outcome in worst.items():
        by_state[outcome.state].append(name)
    lines = [f"# {title}", "", "| state | what it says | count | share |", "|---|---|--:|--:|"]
    for state, meaning in reversed(STATES.items()):
        count = len(by_state[state])
        lines.append(table_row([state, meaning, count, f"{count / max(1, len(worst)):.1%}"]))
    lines += [f"| all | | {len(worst)} | |", "", *durations(outcomes), "", *reasons(worst)]
    for state in list(STATES)[:-1]:
        if by_state[state]:
            lines += ["", f"## {state}", ""]
            lines += [f"- {named(worst[name])}" for name in by_state[state]]
    return "\n".join(lines) + "\n"


def named(outcome: Outcome) -> str:
    name = f" {outcome.name}" if outcome.name not in outcome.problem else ""
    return f"{outcome.problem}{name}" + (f": {'; '.join(outcome.reasons)}" if outcome.reasons else "")


def durations(outcomes: Sequence[Outcome]) -> list[str]:
    seconds = sorted(o.seconds for o in outcomes if o.seconds is not None)
    if not seconds:
        return []
    quick = sum(s <= SLOW_SECONDS for s in seconds) / len(seconds)
    return [
        f"Drafting took {statistics.median(seconds):.1f} s in the median and {seconds[-1]:.1f} s at most; "
        f"{quick:.1%} of {len(seconds)} took at most {SLOW_SECONDS:g} s."
    ]


def reasons(worst: Mapping[str, Outcome]) -> list[str]:
    """What keeps how many from being drafted whole, with one of them."""
    counts = Counter(reason for outcome in worst.values() for reason in set(outcome.reasons))
    first: dict[str, str] = {}
    for name, outcome in worst.items():
        for reason in outcome.reasons:
            first.setdefault(reason, name)
    rows = [table_row([count, reason, first[reason]]) for reason, count in counts.most_common()]
    return ["| count | reason | such as |", "|--:|---|---|", *rows] if rows else []


def write_outcomes(out: Path, journal: Journal, title: str, unit: Callable[[str], str] = str) -> Path:
    """Write `table.md` into the folder. `unit` says of which unit a problem is: by default of its own."""
    known = (outcome_of(problem, journal) for problem in recorded(journal))
    table = out / "table.md"
    table.write_text(markdown(title, [o for o in known if o], unit), encoding="utf-8")
    return table
