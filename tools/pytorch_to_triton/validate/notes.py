"""What should be known of a validation, and is not wrong."""

from collections.abc import Iterable, Sequence

from pytorch_to_triton.schema.case_group import DECLARED_GROUPS
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.phrases import shortened, times
from pytorch_to_triton.worker.wire.observation import Observation

SHOWN = 3
"""How many cases are named in a note."""


def note_on_confirmed(results: Iterable[CaseResult]) -> tuple[str, ...]:
    """That PyTorch and float64 are far apart in elements at which the candidate agrees with one of them."""
    names = [r.name for r in results if r.status == "passed" and any(o.confirmed for o in r.outputs)]
    if not names:
        return ()
    return (
        f"In {times(len(names), 'case')}, such as {names[0]}, PyTorch's result is far from the float64 "
        "result in some elements, and the candidate matches one of the two.",
    )


def notes_on_configurations(observations: Iterable[Observation]) -> tuple[str, ...]:
    """How much of each autotuned kernel was compared."""
    choices: dict[tuple[str, int], set[str]] = {}
    for tuned in (tuned for observation in observations for tuned in observation.tuned):
        choices.setdefault((tuned.kernel, tuned.of), set()).add(tuned.configuration)
    return tuple(
        f"{kernel}: {len(names)} of {of} configurations were run." for (kernel, of), names in choices.items()
    )


def notes_on_values(results: Sequence[CaseResult]) -> tuple[str, ...]:
    """A reference that shows little, and cases that pass the budget but not the usual fixed tolerances."""
    passed = [result for result in results if result.status == "passed" and result.group in DECLARED_GROUPS]
    loose = [r.name for r in passed if any(not output.meets_loose for output in r.outputs)]
    strict = [r.name for r in passed if any(not output.meets_strict for output in r.outputs)]
    notes = []
    declared = [o for r in results if r.group in DECLARED_GROUPS for o in r.outputs if o.elements > 1]
    if declared and all(output.constant for output in declared):
        notes.append("The reference returns the same value everywhere: agreeing with it means little.")
    if loose:
        notes.append(f"Within the error budget, but outside the loose tolerance: {shortened(loose, SHOWN)}.")
    if strict := [name for name in strict if name not in loose]:
        notes.append(
            f"Within the error budget, but outside the strict tolerance: {shortened(strict, SHOWN)}."
        )
    return tuple(notes)


def notes_on_truth(results: Iterable[CaseResult]) -> tuple[str, ...]:
    """Which cases were compared with something else than float64."""
    names = shortened([result.name for result in results if result.truth == "own"], SHOWN)
    why = "as float64 is too large there or does not run"
    return (f"Compared with PyTorch at the case's own dtypes, {why}: {names}.",) if names else ()
