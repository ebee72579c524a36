"""The records as a table of operators, and the mutants that survived: `python -m mutants.table OUT`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kernelbench.command import table_row, write_again
from mutants.operators import OPERATORS
from pytorch_to_triton.sweep.journal import Journal, Record

HEAD = (
    "| operator | what it changes | mutants | unreached | equivalent | refused | limited | survived | score |"
)
RULE = "|---|---|--:|--:|--:|--:|--:|--:|--:|"
COLUMNS = ("unreached", "equivalent", "refused", "limited", "survived")
SAMPLE = 80
"""Mutants that `make test-corpora` judges again."""


def equivalents() -> dict[str, str]:
    """The mutants that are known to compute the same as their kernel, each with the reason.

    An entry of `equivalent.txt` is a place, a difference and a reason, with an empty line after it:

        softmax/softmax_kernel/other_dropped
        - x = tl.load(x_ptr + cols, mask=mask, other=0.0)
        + x = tl.load(x_ptr + cols, mask=mask)
        What is loaded in masked lanes is stored nowhere.

    Raises ValueError for one that lacks something.
    """
    same = {}
    for entry in Path(__file__).with_name("equivalent.txt").read_text(encoding="utf-8").split("\n\n"):
        if lines := [line for line in entry.splitlines() if not line.startswith("#")]:
            place, before, after, *reason = (*lines, "", "")
            if not (before.startswith("- ") and after.startswith("+ ") and reason[0]):
                raise ValueError(
                    f"An equivalent mutant is a place, '- before', '+ after', a reason, not {lines}"
                )
            same[f"{place}: {before[2:]} => {after[2:]}"] = " ".join(reason).strip()
    return same


def status_of(record: Record, same: Mapping[str, str]) -> str:
    """One of COLUMNS; what was not decided has survived."""
    status = str(record["status"])
    if status in ("survived", "undecided"):
        return "equivalent" if record["item"] in same else "survived"
    return status


def markdown(records: Iterable[Record], same: Mapping[str, str]) -> str:
    """The table, with all operators together in its last row, and each survivor's difference."""
    judged = sorted((r for r in records if "operator" in r), key=lambda r: str(r["id"]))
    lines = [HEAD, RULE]
    for operator in OPERATORS:
        if mine := [status_of(r, same) for r in judged if r["operator"] == operator.name]:
            lines.append(row(f"`{operator.name}`", operator.summary, mine))
    lines.append(row("all", "", [status_of(r, same) for r in judged]))
    return "\n".join([*lines, *survivors([r for r in judged if status_of(r, same) == "survived"])]) + "\n"


def row(name: str, summary: str, statuses: Sequence[str]) -> str:
    count = Counter(statuses)
    reached = len(statuses) - count["unreached"] - count["equivalent"]
    noticed = count["refused"] + count["limited"]
    score = f"{noticed / reached:.1%}" if reached else "–"
    return table_row([name, summary, len(statuses), *(count[column] for column in COLUMNS), score])


def survivors(records: Sequence[Record]) -> list[str]:
    lines = ["", f"{len(records)} survived."] if records else []
    for record in records:
        before, _, after = str(record["item"]).partition(": ")[2].partition(" => ")
        why = f" ({record['status']}: {record['why']})" if record["status"] != "survived" else ""
        lines += ["", f"{record['id']}{why}", "", "```diff", f"- {before}", f"+ {after}", "```"]
    return lines


def sample_of(records: Iterable[Record]) -> list[str]:
    """The keys of SAMPLE mutants that were refused, of all operators alike, the quickest first of each."""
    turns: Counter[str] = Counter()
    ranked = []
    for record in sorted(records, key=lambda r: float(r.get("seconds", 0))):
        if record["status"] == "refused":
            turns[record["operator"]] += 1
            ranked.append((turns[record["operator"]], str(record["item"])))
    return sorted(key for _, key in sorted(ranked)[:SAMPLE])


def write_table(out: Path, journal: Journal) -> Path:
    """Write `table.md` into the folder, and beside it `sample.txt`: refused mutants, a key a line."""
    path = out / "table.md"
    path.write_text(markdown(journal, equivalents()), encoding="utf-8")
    sample = "".join(f"{key}\n" for key in sample_of(journal))
    (out / "sample.txt").write_text(sample, encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(write_again(write_table, __doc__))
