"""A reference that fails on what is declared for it: the caller's mistake, and no verdict on a kernel."""

from collections.abc import Sequence

from pytorch_to_triton.errors import BadInput, TargetBroken
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.targets.first_call import CORRECT_IT
from pytorch_to_triton.validate.cases import CasePlan
from pytorch_to_triton.validate.judge import CLAIMED

ENDED = "The reference ended its process"
SLOW = "The reference did not return within"
RAISED = "The reference raised"


def refuse_empty(plan: CasePlan) -> None:
    """Raises BadInput where nothing of what is declared can be run."""
    if not plan.cases and plan.skipped:
        first = plan.skipped[0]
        raise BadInput(
            f"No declared case can be run: {first.what}: {first.why}.",
            "Declare sizes within that, with DIMS or --dim, or a smaller shape with --input.",
        )


def refuse_unrunnable_reference(
    results: Sequence[CaseResult], reference: Target, asked: Sequence[str] = ()
) -> None:
    """Raises TargetBroken where the reference fails at the middle of the declared sizes, the first case.

    One that fails at other cases only leaves them undecided, and so do cases that were `asked` for by name.
    """
    declared = [result for result in results if result.group in CLAIMED]
    if asked or not declared or declared[0].status != "reference_raised" or "NoGradient" in declared[0].why:
        return
    why, count = declared[0].why, sum(result.status == "reference_raised" for result in declared)
    hint = next((hint for words, hint in HINTS.items() if why.startswith(words)), None)
    if hint is None:
        return
    told = why.removeprefix("The reference ").strip(" :.")
    raise TargetBroken(
        f"The reference {reference} {told}, at {declared[0].name} and in {count} of {len(declared)} declared "
        "cases.",
        hint,
    )


HINTS = {
    RAISED: CORRECT_IT,
    ENDED: "Take what ends or crashes the process out of the function, or declare inputs that it takes.",
    SLOW: "Allow more with --timeout, or declare smaller sizes.",
}
"""By how the case's result says it; other words are not about the reference's own code."""
