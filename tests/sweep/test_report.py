"""Each item is in one state, the states add up, and speeds count what is right."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.sweep.files import write_results
from pytorch_to_triton.sweep.outcome import ItemResult, result_of
from pytorch_to_triton.sweep.phases import PhaseName

PHASES: tuple[PhaseName, ...] = ("draft", "validate", "audit", "time")


def record(status: str, **more: Any) -> dict[str, Any]:
    return {"status": status, "seconds": 1.0, "why": "", **more}


def validated(status: str, *violations: str) -> dict[str, Any]:
    return record(status, violations=list(violations), mismatches=[], why="out is wrong")


def measured(kernel: float, eager: float, compiled: float) -> dict[str, Any]:
    size = {"kernel_ms": kernel, "eager_ms": eager, "compile_ms": compiled, "share_of_limit": 0.5}
    return record("measured", sizes=[size])


PASSED = {"draft": record("drafted"), "validate": validated("passed"), "audit": record("clean")}


@pytest.mark.parametrize(
    ("known", "state"),
    [
        ({**PASSED, "time": measured(1.0, 3.0, 2.0)}, "right"),
        ({"draft": record("refused", kind="not_convertible")}, "not drafted"),
        ({"draft": record("refused", kind="bad_input")}, "broken"),
        ({"draft": record("timed_out")}, "timed out"),
        ({"draft": record("raised")}, "crashed"),
        ({"draft": record("drafted")}, "waiting"),
        ({**PASSED, "validate": validated("failed")}, "wrong"),
        ({**PASSED, "validate": validated("failed", "race")}, "wrong"),
        ({**PASSED, "validate": validated("failed", "race", "torch_operator")}, "cheating"),
        ({**PASSED, "validate": validated("failed", "calls_the_reference")}, "cheating"),
        ({**PASSED, "validate": validated("timed_out")}, "timed out"),
        ({**PASSED, "validate": validated("crashed")}, "crashed"),
        ({**PASSED, "validate": validated("undecided")}, "undecided"),
        ({**PASSED, "validate": record("refused")}, "broken"),
        ({**PASSED, "audit": record("faulty")}, "faulty"),
        ({**PASSED, "time": record("void")}, "untimed"),
    ],
)
def test_the_first_phase_that_is_not_passed_decides_the_state(known: dict[str, Any], state: str) -> None:
    assert result_of("k", known, PHASES).state == state


def test_what_was_not_validated_is_not_called_right() -> None:
    assert result_of("k", PASSED, ("draft",)).state == "done"


def results() -> list[ItemResult]:
    fast = result_of("fast", {**PASSED, "time": measured(1.0, 4.0, 2.0)}, PHASES)
    slow = result_of("slow", {**PASSED, "time": measured(1.0, 1.0, 0.5)}, PHASES)
    wrong = result_of("<wrong>", {**PASSED, "validate": validated("failed")}, PHASES)
    cheating = result_of("cheat", {**PASSED, "validate": validated("failed", "torch_operator")}, PHASES)
    return [fast, slow, wrong, cheating]


def test_fast_p_is_a_share_of_all_items_and_counts_only_right_ones(tmp_path: Path) -> None:
    report = write_results(tmp_path, PHASES, "a GPU", results(), None)
    assert report.states == {"right": 2, "wrong": 1, "cheating": 1}
    assert report.cheats == {"torch_operator": 1}
    beside = {speed.over: speed for speed in report.speeds}
    assert beside["eager"].fast == {"1": 0.25, "1.2": 0.25, "1.5": 0.25, "2": 0.25}
    assert beside["torch.compile"].fast == {"1": 0.25, "1.2": 0.25, "1.5": 0.25, "2": 0.0}
    assert beside["torch.compile"].geometric_mean == pytest.approx(1.0)
    assert report.slowest == ("slow (0.50)",)
    text = (tmp_path / "report.md").read_text()
    assert "| torch.compile | 2 | 1.00 | 25% | 25% | 25% | 0% |" in text
    assert "- <wrong>: wrong. out is wrong" in text
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["right", "right", "wrong", "cheating"]


def test_the_page_escapes_what_comes_from_items_and_draws_what_was_timed(tmp_path: Path) -> None:
    write_results(tmp_path, PHASES, "a GPU", results(), None)
    page = (tmp_path / "sweep.html").read_text()
    assert "&lt;wrong&gt;" in page
    assert "<wrong>" not in page
    assert page.count("<circle") == 2
    assert "http" not in page
    write_results(tmp_path, PHASES, "a GPU", results()[2:], None)
    assert "<svg" not in (tmp_path / "sweep.html").read_text()


def test_two_sweeps_are_compared_item_by_item(tmp_path: Path) -> None:
    write_results(tmp_path / "before", PHASES, "a GPU", results(), None)
    fixed = result_of("<wrong>", {**PASSED, "time": measured(1.0, 1.0, 1.0)}, PHASES)
    slower = result_of("fast", {**PASSED, "time": measured(2.0, 4.0, 2.0)}, PHASES)
    report = write_results(tmp_path / "after", PHASES, "a GPU", [fixed, slower], tmp_path / "before")
    assert report.comparison is not None
    assert report.comparison.items == 2
    assert [change.key for change in report.comparison.better] == ["<wrong>"]
    assert [(c.before, c.after) for c in report.comparison.worse] == [
        ("right, 1.0000 ms", "right, 2.0000 ms")
    ]
    assert report.comparison.speed == pytest.approx(0.5)
    with pytest.raises(BadInput, match="holds no results of a sweep"):
        write_results(tmp_path / "after", PHASES, "a GPU", [fixed], tmp_path / "missing")
