"""The mutants that are known to compute the same as their kernel: `equivalent.txt`, read.

An entry is a place, a difference and a reason, on lines of their own, with an empty line after it:

    softmax/softmax_kernel/other_dropped
    - x = tl.load(x_ptr + cols, mask=mask, other=0.0)
    + x = tl.load(x_ptr + cols, mask=mask)
    What is loaded in masked lanes is stored nowhere.
"""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("equivalent.txt")


def equivalents(file: Path = FILE) -> dict[str, str]:
    """The reasons, by the mutants' keys. Raises ValueError for an entry that lacks something."""
    entries = [
        [line for line in entry.splitlines() if not line.startswith("#")]
        for entry in file.read_text(encoding="utf-8").split("\n\n")
    ]
    return dict(map(entry_of, filter(None, entries)))


def entry_of(lines: list[str]) -> tuple[str, str]:
    if len(lines) < 4 or not (lines[1].startswith("- ") and lines[2].startswith("+ ")):
        raise ValueError(f"An equivalent mutant is a place, '- before', '+ after' and a reason, not {lines}")
    place, before, after, *reason = lines
    return f"{place}: {before[2:]} => {after[2:]}", " ".join(reason)
