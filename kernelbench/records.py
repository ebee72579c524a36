"""What is known of each problem: one line of JSON a result, appended as it comes, the last one counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]
"""`problem`, `phase`, `where`, `status`, and what the phase found. `digest` names the draft it is about."""
Key = tuple[str, str, str]
MACHINE = "*"
"""The problem of a record that is about the machine."""
FAILED = frozenset({"timed_out", "crashed", "raised"})
"""How a phase ends that says nothing about the problem for certain: worth another try."""


def key_of(record: Record) -> Key:
    """What a later record replaces: the same phase of the same problem, at the same sizes and device."""
    return record["problem"], record["phase"], record["where"]


class Records:
    """The records of a results folder. A line is written by one system call, and a torn one is not read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.last: dict[Key, Record] = {key_of(r): r for r in read(file)}
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.read_bytes().endswith(b"\n"):
            self._append("\n")  # ends a line that was cut off

    def add(self, record: Record) -> None:
        """Write a record; from now on it is the last one of its key."""
        self._append(json.dumps(record) + "\n")
        self.last[key_of(record)] = record

    def _append(self, text: str) -> None:
        opened = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(opened, text.encode())
            os.fsync(opened)
        finally:
            os.close(opened)

    def of(self, problem: str, phase: str, where: str) -> Record | None:
        return self.last.get((problem, phase, where))

    def draft(self, problem: str) -> Record | None:
        """The problem's draft, be it a refusal."""
        return self.of(problem, "draft", "")

    def is_done(self, problem: str, phase: str, where: str, *, retried: bool = False) -> bool:
        """Whether the phase has a result that is about the current draft.

        `retried`: one that ended by a crash, an exception or a time limit counts as none.
        """
        record = self.of(problem, phase, where)
        if record is None or (retried and record["status"] in FAILED):
            return False
        return phase == "draft" or record.get("digest") == (self.draft(problem) or {}).get("digest")


def read(file: Path) -> Iterable[Record]:
    """The whole lines of the file, in order; none where it does not exist."""
    if not file.exists():
        return []
    records = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue  # the last write was cut off
    return [r for r in records if isinstance(r, dict) and {"problem", "phase", "where", "status"} <= r.keys()]
