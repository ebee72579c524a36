"""Results outlive whatever ends a run, and hold for what they are about."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.sweep.journal import Journal, open_journal

WRITES_UNTIL_KILLED = """
import itertools, sys
from pathlib import Path
from pytorch_to_triton.sweep.journal import open_journal
with open_journal(Path(sys.argv[1])) as journal:
    for number in itertools.count():
        about = {"item": str(number), "phase": "draft", "where": "", "status": "drafted"}
        journal.add({**about, "text": "x" * 9999})
        print(number, flush=True)
"""


def record(phase: str, status: str, **more: Any) -> dict[str, Any]:
    return {"item": "1/19", "phase": phase, "where": "", "status": status, **more}


def test_the_last_record_of_a_phase_counts(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.add(record("draft", "refused"))
    journal.add(record("draft", "drafted", digest="a"))
    assert Journal(tmp_path / "journal.sqlite").about("1/19") == [record("draft", "drafted", digest="a")]


def test_records_are_whole_after_a_kill(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITES_UNTIL_KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 20:
            pass
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
    with open_journal(tmp_path) as journal:
        texts = [known["text"] for known in journal]
    assert len(texts) >= 21
    assert {len(text) for text in texts} == {9999}


def test_a_result_about_something_else_is_not_done(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.add(record("check", "right", digest="a"))
    assert journal.is_done("1/19", "check", "", "a")
    assert not journal.is_done("1/19", "check", "", "b")
    assert not journal.is_done("1/19", "check", "on another device", "a")


def test_a_crash_is_done_unless_failures_are_retried(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.add(record("draft", "crashed", digest="a"))
    assert journal.is_done("1/19", "draft", "", "a")
    assert not journal.is_done("1/19", "draft", "", "a", retried=True)
    journal.add(record("draft", "refused", digest="a"))
    assert journal.is_done("1/19", "draft", "", "a", retried=True)


def test_a_folder_takes_one_run_at_a_time(tmp_path: Path) -> None:
    another = pytest.raises(BadInput, match="Another run writes its results")
    with open_journal(tmp_path), another, open_journal(tmp_path):
        pass
    with open_journal(tmp_path) as journal:
        assert journal.items() == []
