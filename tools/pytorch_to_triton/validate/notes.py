"""What should be known of a validation, and is not wrong."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pytorch_to_triton.schema.case_group import DECLARED_GROUPS
from pytorch_to_triton.schema.verdict import Behavior, CaseResult, Skip
from pytorch_to_triton.validate.behavior import GRADIENT, uses_atomics
from pytorch_to_triton.validate.phrases import shortened, times
from pytorch_to_triton.validate.policy import ANY, Policy, public
from pytorch_to_triton.worker.wire.observation import Observation

SHOWN = 3
"""How many cases are named in a note."""
WITHIN = "Within the error budget, but outside the {} tolerance: {}."
DRAWN = (
    "The reference draws random numbers. A kernel agrees where it draws the same ones: for each call "
    "seed = torch.randint(2**62, (), device=x.device), element i is tl.rand(seed, i), and dropout keeps what "
    "is greater than p."
)
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
    observations = tuple(observations)
    if any(observation.reference_draws for observation in observations):
        yield DRAWN
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


def notes_of(observations: Sequence[Observation], policy: Policy) -> Iterator[str]:
    """What should be known of a candidate that does nothing wrong."""
    unsteady = [s for s in observations if s.differs and uses_atomics(s)]
    if atomic := sorted({launch.kernel for s in unsteady for launch in s.launches if launch.atomics}):
        yield f"Results differ from run to run in their last bits: {', '.join(atomic)} uses atomics."
    apart = {(o, of) for s in observations for o, of in s.aliases_of_reference - s.aliases if o in s.origins}
    for output, of in sorted(apart):
        if not output.startswith(GRADIENT):
            yield f"{output} has memory of its own in some cases where PyTorch's shares that of {of}."
    used = behavior_of(observations).operators
    if named := [name for name in Policy().refused(used) if not policy.refused([name])]:
        yield f"Computed by PyTorch, as allowed: {', '.join(named)}."
    called = set(map(public, used))
    if unused := sorted(name for name in policy.allow_torch - {ANY} if public(name) not in called):
        yield f"--allow-torch {', '.join(unused)} is never used: give the names that aten has for operators."


def behavior_of(observations: Iterable[Observation]) -> Behavior:
    """Launches and operators of all cases added up."""
    kernels: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    for observation in observations:
        for launch in observation.launches:
            kernels[launch.kernel] += launch.count
        operators.update(observation.operators)
    return Behavior(kernels=dict(kernels), operators=dict(operators))
