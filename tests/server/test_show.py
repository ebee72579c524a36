"""What a terminal shows of a verdict."""

import pytest

from pytorch_to_triton.schema.verdict import Behavior, Decision, Verdict
from pytorch_to_triton_server.show import closing_lines

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
