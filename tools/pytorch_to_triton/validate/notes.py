"""What should be known of a validation, and is not wrong."""

from collections.abc import Iterable, Iterator, Sequence

from pytorch_to_triton.schema.case_group import DECLARED_GROUPS
from pytorch_to_triton.schema.verdict import CaseResult, Skip
from pytorch_to_triton.validate.phrases import shortened, times
from pytorch_to_triton.worker.wire.observation import Observation

SHOWN = 3
"""How many cases are named in a note."""
WITHIN = "Within the error budget, but outside the {} tolerance: {}."
SINGLE_TURN = "no size that was tried takes a second turn; a larger one may"


def notes_on(results: Sequence[CaseResult], observations: Iterable[Observation] = ()) -> Iterator[str]:
    """A reference that shows little, what cases that passed were compared with and how closely they agree,
    and how much of each autotuned kernel was compared."""
    declared = [result for result in results if result.group in DECLARED_GROUPS]
    outputs = [output for result in declared for output in result.outputs if output.elements > 1]
    if outputs and all(output.constant for output in outputs):
        yield "The reference returns the same value everywhere: agreeing with it means little."
    passed = [result for result in declared if result.status == "passed"]
    loose = [r.name for r in passed if not all(output.meets_loose for output in r.outputs)]
    strict = [r.name for r in passed if not all(output.meets_strict for output in r.outputs)]
    for tolerance, names in (("loose", loose), ("strict", [name for name in strict if name not in loose])):
        if names:
            yield WITHIN.format(tolerance, shortened(names, SHOWN))
    confirmed = [r.name for r in results if r.status == "passed" and any(o.confirmed for o in r.outputs)]
    if confirmed:
        yield (
            f"In {times(len(confirmed), 'case')}, such as {confirmed[0]}, PyTorch's result is far from the "
            "float64 result in some elements, and the candidate matches one of the two."
        )
    if own := shortened([result.name for result in results if result.truth == "own"], SHOWN):
        why = "as float64 is too large there or does not run"
        yield f"Compared with PyTorch at the case's own dtypes, {why}: {own}."
    choices: dict[tuple[str, int], set[str]] = {}
    for tuned in (tuned for observation in observations for tuned in observation.tuned):
        choices.setdefault((tuned.kernel, tuned.of), set()).add(tuned.configuration)
    for (kernel, of), configurations in choices.items():
        yield f"{kernel}: {len(configurations)} of {of} configurations were run."


def loops_of_one_turn(observations: Iterable[Observation], file: str) -> tuple[Skip, ...]:
    """The loops in the file that were reached and took one turn at most, by line."""
    most: dict[tuple[int, str], int] = {}
    for loop in (loop for observation in observations for loop in observation.loops if loop.file == file):
        place = (loop.line, loop.function)
        most[place] = max(most.get(place, 0), loop.turns)
    single = sorted(place for place, turns in most.items() if turns <= 1)
    return tuple(Skip(what=second_turn(line, function), why=SINGLE_TURN) for line, function in single)


def second_turn(line: int, function: str) -> str:
    """What was not tried, as a verdict lists it."""
    return f"a second turn of the loop in line {line} of {function}"
