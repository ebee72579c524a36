"""What a terminal shows of a result."""

import inspect
import re

import pytest

from pytorch_to_triton.schema.verdict import Behavior, Decision, Verdict
from pytorch_to_triton_server.catalogue import TOOLS
from pytorch_to_triton_server.over_mcp.output_schemas import model_of
from pytorch_to_triton_server.show import closing_lines, tables_of

SUMMARY_SAYS_ALL = {"Machine", "FetchReport", "PageExcerpt"}
"""Results without a table; a page's text is printed as it is."""
AGAIN = "Run it again: pytorch-to-triton validate k.py --seed 7"


@pytest.mark.parametrize(("decision", "shown"), [("failed", True), ("undecided", True), ("passed", False)])
def test_what_did_not_pass_is_shown_with_the_command_that_runs_it_again(
    decision: Decision, shown: bool
) -> None:
    verdict = Verdict(
        summary="So it is.",
        next_step="Go on.",
        verdict=decision,
        candidate="k.py",
        reference="k.py",
        cases=(),
        skipped=(),
        behavior=Behavior(kernels={}, operators={}),
        replay=AGAIN.removeprefix("Run it again: "),
        seed=7,
        device="CPU",
        provenance="measured",
    )
    assert (AGAIN in closing_lines(verdict)) == shown


def test_the_details_of_every_tool_s_result_are_shown_unless_its_summary_says_all() -> None:
    shown = set(re.findall(r"case (\w+)\(", inspect.getsource(tables_of)))
    results = {model_of(tool.name).__name__ for tool in TOOLS}
    assert results - shown == SUMMARY_SAYS_ALL, "give it a case in tables_of, or name it in SUMMARY_SAYS_ALL"
