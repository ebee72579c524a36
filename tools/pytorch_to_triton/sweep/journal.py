"""What is known of each item of a run: a record for each of its phases, in SQLite."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pytorch_to_triton.errors import BadInput

Record = Mapping[str, Any]
"""`item`, `phase`, `where`, `digest`, `status`, and what the phase found. `digest` is of what it is about."""
FAILED = frozenset({"timed_out", "crashed", "raised", "lost"})
"""How a phase ends that says nothing about the item for certain: worth another try."""
IN_MEMORY = Path(":memory:")

_TABLE = """
CREATE TABLE IF NOT EXISTS records (
    item TEXT, phase TEXT, place TEXT, digest TEXT, status TEXT, record TEXT, PRIMARY KEY (item, phase, place)
)
"""


class Journal:
    """A record is written by a transaction of its own: whatever ends a run, it is there whole or not at all.

    A later record of the same phase of the same item in the same place replaces the earlier one.
    """

    def __init__(self, file: Path) -> None:
        if file != IN_MEMORY:
            file.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(file, isolation_level=None)
        self._database.execute(_TABLE)

    def add(self, record: Record) -> None:
        key = [record["item"], record["phase"], record["where"], record.get("digest"), record["status"]]
        text = json.dumps(record)
        self._database.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)", [*key, text])

    def of(self, item: str, phase: str, where: str) -> Record | None:
        """The record of a phase; None where there is none."""
        return next(self._selected("item = ? AND phase = ? AND place = ?", item, phase, where), None)

    def about(self, item: str) -> list[Record]:
        """All records of an item."""
        return list(self._selected("item = ?", item))

    def __iter__(self) -> Iterator[Record]:
        return self._selected("TRUE")

    def items(self) -> list[str]:
        """The items of which anything is known."""
        return [item for (item,) in self._database.execute("SELECT DISTINCT item FROM records ORDER BY item")]

    def is_done(self, item: str, phase: str, where: str, digest: str, *, retried: bool = False) -> bool:
        """Whether the phase has a result about what has this digest.

        `retried`: one that ended by a crash, an exception or a time limit counts as none.
        """
        known = self._database.execute(
            "SELECT digest, status FROM records WHERE item = ? AND phase = ? AND place = ?",
            [item, phase, where],
        ).fetchone()
        return known is not None and known[0] == digest and not (retried and known[1] in FAILED)

    def close(self) -> None:
        self._database.close()

    def _selected(self, condition: str, *values: str) -> Iterator[Record]:
        for (text,) in self._database.execute(f"SELECT record FROM records WHERE {condition}", values):
            yield json.loads(text)


@contextmanager
def open_journal(folder: Path) -> Iterator[Journal]:
    """The journal of a results folder, for this process alone.

    Raises BadInput where another process writes it, and where nothing can be written.
    """
    lock = FileLock(folder / "journal.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise BadInput(
            f"Another run writes its results into {folder}.", "Wait for it, or name another folder."
        ) from None
    except OSError as error:
        raise BadInput(
            f"Nothing can be written into {folder}: {error.strerror}.", "Name another folder."
        ) from error
    try:
        try:
            journal = Journal(folder / "journal.sqlite")
        except sqlite3.DatabaseError as error:
            raise BadInput(f"{folder}/journal.sqlite cannot be read: {error}.", "Remove it.") from error
        try:
            yield journal
        finally:
            journal.close()
    finally:
        lock.release()
