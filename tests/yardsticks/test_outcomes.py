"""A unit is in the worst state of its problems, and why they are not drafted whole is counted."""

from pathlib import Path
from typing import Any

from pytorch_to_triton.sweep.journal import Journal
from yardsticks.outcomes import outcome_of, write_outcomes


def recorded(folder: Path, *records: dict[str, Any]) -> Journal:
    kept = Journal(folder / "journal.sqlite")
    for record in records:
        kept.add({"name": "Model", "where": "", "seconds": 1.5, **record})
    return kept


def drafted(problem: str, *left: str) -> dict[str, Any]:
    ways = {"own kernels": {"kernels": ["k"], "calls": ["aten.x"] * len(left), "left": left}}
    return {"item": problem, "phase": "draft", "status": "drafted", "made": "a", "ways": ways}


def refused(problem: str, message: str) -> dict[str, Any]:
    return {"item": problem, "phase": "draft", "status": "refused", "refusal": {"message": message}}


def checked(problem: str, status: str, digest: str = "a") -> dict[str, Any]:
    return {"item": problem, "phase": "check", "status": status, "why": "4 differ", "digest": digest}


def state(journal: Journal, problem: str) -> tuple[str, tuple[str, ...]]:
    outcome = outcome_of(problem, journal)
    assert outcome is not None
    return outcome.state, outcome.reasons


def test_a_draft_counts_once_it_is_compared(tmp_path: Path) -> None:
    records = recorded(tmp_path, drafted("a/0"), drafted("b/0"), drafted("c/0"))
    records.add(checked("a/0", "right") | {"where": ""})
    records.add(checked("b/0", "wrong") | {"where": ""})
    records.add(checked("c/0", "wrong", digest="of an earlier draft") | {"where": ""})
    assert state(records, "a/0") == ("drafted", ())
    assert state(records, "b/0") == ("wrong", ("N differ",))
    assert state(records, "c/0") == ("undecided", ())
    assert outcome_of("d/0", records) is None


def test_calls_are_named_with_their_reasons_but_without_their_lines(tmp_path: Path) -> None:
    left = "`aten.linalg_qr` (line 7): no kernel is drafted for this operator"
    whole = "Model cannot be drafted, for all of it would stay calls of PyTorch: "
    records = recorded(
        tmp_path,
        drafted("a/0", left),
        refused("b/0", f"{whole}{left}."),
        refused("c/0", "`x` at line 12 is 'odd'."),
        drafted("d/0", "`aten.add` (line 7): a defect of pytorch-to-triton, please report it (KeyError)"),
    )
    reason = "`aten.linalg_qr`: no kernel is drafted for this operator"
    assert state(records, "a/0") == ("in parts", (reason,))
    assert state(records, "b/0") == ("left to PyTorch", (reason,))
    assert state(records, "c/0") == ("refused", ("… at line N is ….",))
    assert state(records, "d/0")[0] == "crashed"


def test_a_unit_is_in_the_worst_state_of_its_problems(tmp_path: Path) -> None:
    records = recorded(tmp_path, drafted("relu/0"), drafted("relu/1"), drafted("exp/0"))
    records.add(drafted("exp/1") | {"name": "exp", "where": "", "seconds": 31.0})
    for problem, status in {"relu/0": "right", "relu/1": "wrong", "exp/0": "right"}.items():
        records.add(checked(problem, status) | {"where": ""})
    table = write_outcomes(tmp_path, records, "Operators", lambda problem: problem.partition("/")[0])
    text = table.read_text()
    assert "| wrong | its results are not PyTorch's | 1 | 50.0% |" in text
    assert "| too slow | drafting took over 20 s | 1 | 50.0% |" in text
    assert "| drafted | kernels alone, with PyTorch's results | 0 | 0.0% |" in text
    assert "Drafting took 1.5 s in the median and 31.0 s at most; 75.0% of 4 took at most 20 s." in text
    assert "| 1 | N differ | relu |" in text
