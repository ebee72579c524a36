"""Results outlive whatever ends a run, and hold for the draft that they are about."""

from pathlib import Path
from typing import Any

from kernelbench.records import Records


def record(phase: str, status: str, **more: Any) -> dict[str, Any]:
    return {"problem": "1/19", "phase": phase, "where": "", "status": status, **more}


def test_the_last_record_of_a_phase_counts(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.jsonl")
    records.add(record("draft", "refused"))
    records.add(record("draft", "drafted", digest="a"))
    assert Records(records.file).draft("1/19") == record("draft", "drafted", digest="a")


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.jsonl")
    records.add(record("draft", "drafted", digest="a"))
    whole = records.file.read_text()
    records.file.write_text(whole + '{"problem": "1/19", "phase": "che')
    again = Records(records.file)
    again.add(record("check", "right", digest="a"))
    assert [key[1] for key in Records(records.file).last] == ["draft", "check"]


def test_a_result_about_an_earlier_draft_is_not_done(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.jsonl")
    records.add(record("draft", "drafted", digest="a"))
    records.add(record("check", "right", digest="a"))
    assert records.is_done("1/19", "check", "")
    records.add(record("draft", "drafted", digest="b"))
    assert not records.is_done("1/19", "check", "")
    assert records.is_done("1/19", "draft", "")


def test_a_crash_is_done_unless_failures_are_retried(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.jsonl")
    records.add(record("draft", "crashed"))
    assert records.is_done("1/19", "draft", "")
    assert not records.is_done("1/19", "draft", "", retried=True)
    records.add(record("draft", "refused"))
    assert records.is_done("1/19", "draft", "", retried=True)
