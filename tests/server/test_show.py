"""What a terminal shows of a result."""

import inspect
import re
from collections.abc import Sequence
from typing import Any

import pytest

from pytorch_to_triton.schema.verdict import (
    Behavior,
    CaseResult,
    CaseStatus,
    Decision,
    Kind,
    Mismatch,
    OutputFigures,
    Verdict,
    Violation,
)
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.over_mcp.output_schemas import model_of
from pytorch_to_triton_server.show import closing_lines, passed_of_all, show, tables_of
from pytorch_to_triton_server.verdict_tables import every_case, verdict_tables, worst_error

SUMMARY_SAYS_ALL = {"Machine", "FetchReport", "PageExcerpt"}
"""Results without a table; a page's text is printed as it is."""
AGAIN = "Run it again: pytorch-to-triton validate k.py --seed 7"


def verdict_with(decision: Decision, statuses: Sequence[CaseStatus] = ()) -> Verdict:
    return Verdict(
        summary="So it is.",
        next_step="Go on.",
        verdict=decision,
        candidate="k.py",
        reference="k.py",
        cases=tuple(
            CaseResult(name=f"N={n}", group="odd", status=status, why="") for n, status in enumerate(statuses)
        ),
        skipped=(),
        behavior=Behavior(kernels={}, operators={}),
        replay=AGAIN.removeprefix("Run it again: "),
        seed=7,
        device="CPU",
        provenance="measured",
    )


@pytest.mark.parametrize(("decision", "shown"), [("failed", True), ("undecided", True), ("passed", False)])
def test_what_did_not_pass_is_shown_with_the_command_that_runs_it_again(
    decision: Decision, shown: bool
) -> None:
    verdict = verdict_with(decision)
    assert (AGAIN in closing_lines(verdict)) == shown


def test_the_details_of_every_tool_s_result_are_shown_unless_its_summary_says_all() -> None:
    shown = set(re.findall(r"case (\w+)\(", inspect.getsource(tables_of)))
    results = {model_of(tool.name).__name__ for tool in TOOLS}
    assert results - shown == SUMMARY_SAYS_ALL, "give it a case in tables_of, or name it in SUMMARY_SAYS_ALL"


def test_cases_that_were_not_run_have_one_row_together() -> None:
    verdict = verdict_with("failed", ["timed_out", *["skipped"] * 40])
    left = [case.model_copy(update={"reason": "not_run", "why": "not run"}) for case in verdict.cases[1:]]
    verdict = verdict.model_copy(update={"cases": (verdict.cases[0], *left)})
    (every,) = every_case(verdict)
    mistakes, groups = verdict_tables(verdict)
    assert [row[0] for row in every.rows] == ["N=0", "40 cases"]
    assert [row[:2] for row in mistakes.rows] == [("1", "timed_out"), ("40", "not run")]
    assert groups.rows == [("odd", "0 of 1", "", "")]


def wrong(name: str, kind: Kind = "values", *rules: Violation, **fields: Any) -> CaseResult:
    found = Mismatch(output="out", kind=kind, where=None, message="", causes=(), first=None)
    given = {"group": "odd", "status": "failed", "why": f"{kind} at {name}", **fields}
    return CaseResult(name=name, mismatches=(found,), violations=rules, **given)


def test_each_mistake_has_one_row_with_three_of_its_cases_and_each_group_its_count() -> None:
    follows = Violation(kind="reads_uninitialised", message="", suggestion="")
    sums = [wrong(f"N={n} x sliced", group="layout") for n in (3, 5, 7, 9)]
    cases = (*sums, wrong("N=1", "unwritten", follows), wrong("N=2", "unwritten"))
    verdict = verdict_with("failed", ["passed", "skipped"])
    mistakes, groups = verdict_tables(verdict.model_copy(update={"cases": (*verdict.cases, *cases)}))
    assert [(row[0], row[2], row[4]) for row in mistakes.rows] == [
        ("2", "N=1\nN=2", "unwritten at N=1"),
        ("4", "N=3 x sliced\nN=5 x sliced\nN=7 x sliced", "values at N=3 x sliced"),
    ]
    skipped = "1 skipped: PyTorch's own result says nothing there"
    assert groups.rows == [("odd", "1 of 4", "", skipped), ("layout", "0 of 4", "", "")]


def test_elements_that_were_never_written_are_called_so() -> None:
    figures = OutputFigures(
        path="out", dtype="float32", shape=(9,), elements=9, failing=4, unjudged=0,
        candidate_error=0.5, pytorch_error=0.5, allowed_error=8.0,
    )  # fmt: skip
    assert worst_error(wrong("N=9", "unwritten", outputs=(figures,))) == "4 unwritten"
    assert worst_error(wrong("N=9", "not_propagated", outputs=(figures,))) == "4 not finite"


def test_a_verdict_comes_before_its_mistakes_unless_each_case_is_listed(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    verdict = verdict_with("failed", ["passed", "failed"]).model_copy(update={"notes": ("A note.",)})

    def first_words(*, each_case: bool) -> list[bytes]:
        show(verdict, each_case=each_case)
        return [line.split()[0] for line in capsysbinary.readouterr().out.splitlines() if line.strip()]

    brief, each = first_words(each_case=False), first_words(each_case=True)
    assert (brief[:3], brief[-1]) == ([b"So", b"Go", b"Run"], b"Note:")
    assert [word for word in each if word.startswith(b"N=")] == [b"N=0", b"N=1"]
    assert each[-4:] == [b"Note:", b"So", b"Go", b"Run"]


def test_cases_that_did_not_pass_are_counted_by_how_they_came_out_beside_those_that_passed() -> None:
    verdict = verdict_with("passed", ["passed", "skipped", "passed", "skipped"])
    unreliable = "PyTorch's own result says nothing there"
    assert passed_of_all(verdict) == f"2 of 4, 2 skipped: {unreliable}"
    refused = verdict.cases[1].model_copy(update={"reason": "raised"})
    both = verdict.model_copy(update={"cases": (refused, *verdict.cases[2:])})
    assert passed_of_all(both) == f"1 of 3, 2 skipped: 1 PyTorch raises there, 1 {unreliable}"
    assert passed_of_all(verdict_with("failed", ["passed", "failed"])) == "1 of 2, 1 failed"
    limited = passed_of_all(verdict_with("passed", ["passed", "undecided", "skipped"]))
    assert limited == f"1 of 3, 1 undecided, 1 skipped: {unreliable}"
