"""A reference that fails on what is declared for it: the caller's mistake, and no verdict on a kernel."""

from collections.abc import Sequence

from pytorch_to_triton.errors import BadInput, TargetBroken
from pytorch_to_triton.schema.case_group import DECLARED_GROUPS
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult, NoResult
from pytorch_to_triton.targets.first_call import CORRECT_IT
from pytorch_to_triton.validate.cases import CasePlan

HINTS: dict[NoResult, str] = {
    "raised": CORRECT_IT,
    "crashed": "Take what ends or crashes the process out of the function, or declare inputs that it takes.",
    "timed_out": "Allow more with --timeout, or declare smaller sizes, or values for which it ends.",
}
"""Other reasons are not about the reference's own code."""


def refuse_empty(plan: CasePlan) -> None:
    """Raises BadInput where nothing of what is declared can be run."""
    if not plan.cases and plan.skipped:
        first = plan.skipped[0]
        raise BadInput(
            f"No declared case can be run: {first.what}: {first.why}.",
            "Declare sizes within that, with DIMS or --dim, or a smaller shape with --input.",
        )


def refuse_unrunnable_reference(
    results: Sequence[CaseResult], reference: Target, requested: Sequence[str] = ()
) -> None:
    """Raises TargetBroken where the reference fails at the middle of the declared sizes, the first case.

    One that fails at other cases only leaves them undecided, and so do cases that were `requested` by name.
    """
    declared = [result for result in results if result.group in DECLARED_GROUPS]
    if requested or not declared or declared[0].status != "reference_raised":
        return
    first, count = declared[0], sum(result.status == "reference_raised" for result in declared)
    if first.reason in HINTS:
        raise TargetBroken(
            f"{reference} cannot be used. {first.why.rstrip(' :.')}, at {first.name} and in {count} of "
            f"{len(declared)} declared cases.",
            HINTS[first.reason],
        )
