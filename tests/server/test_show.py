"""What a terminal shows of a result."""

import inspect
import re
from collections.abc import Sequence

import pytest

from pytorch_to_triton.schema.verdict import Behavior, CaseResult, CaseStatus, Decision, Verdict
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.over_mcp.output_schemas import model_of
from pytorch_to_triton_server.show import (
    cases_in_brief,
    closing_lines,
    every_case,
    passed_of_all,
    tables_of,
)

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
    for table in (every_case(verdict), cases_in_brief(verdict)):
        assert [row[0] for row in table.rows] == ["N=0", "40 cases"]


def test_cases_that_could_not_be_judged_are_counted_beside_those_that_passed() -> None:
    verdict = verdict_with("passed", ["passed", "skipped", "passed", "skipped"])
    unreliable = "PyTorch's own result says nothing there"
    assert passed_of_all(verdict) == f"2 of 4, 2 skipped: {unreliable}"
    refused = verdict.cases[1].model_copy(update={"reason": "raised"})
    both = verdict.model_copy(update={"cases": (refused, *verdict.cases[2:])})
    assert passed_of_all(both) == f"1 of 3, 2 skipped: 1 PyTorch raises there, 1 {unreliable}"
    assert passed_of_all(verdict_with("failed", ["passed", "failed"])) == "1 of 2"
