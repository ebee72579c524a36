"""Whether the kernel, its races or the compiler is at fault in a case that is wrong on a device.

The case is run in other ways, interpreted and compiled otherwise; how it fared in them says it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pytorch_to_triton.hardware.miscompilations import MISCOMPILATIONS, Miscompilation, of_triton
from pytorch_to_triton.hardware.versions import Assembler, versions
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.verdict import CaseResult, ViolationKind
from pytorch_to_triton.validate.compiler_patterns import matching_miscompilations, shown_in
from pytorch_to_triton.validate.memory_check import under_interpreter
from pytorch_to_triton.validate.phrases import listed
from pytorch_to_triton.validate.trial import ValidationTrial
from pytorch_to_triton.worker.wire import validation

INTERPRETED, AGAIN = "under Triton's interpreter", "when called once more as it is"
ONE_STAGE, OTHER_WARPS = "with num_stages=1", "with another num_warps"
UNOPTIMISED = "with ptxas unoptimised"
PTXAS = "with ptxas "
"""Before a version."""
KERNEL = "the kernel is at fault, not the compiler"
UNSTEADY = (
    "it is not wrong each time, as with a race, uninitialised memory, or what earlier calls left behind"
)
ORDER = (
    "the order of loads and stores is at fault: the kernel lacks a barrier between a store and a load of the "
    "same memory, or Triton pipelines or exchanges values wrongly. Which of the two is not known"
)
UNDETERMINED = (
    "what is at fault is undetermined. It may be precision, or what the device does otherwise than the "
    "interpreter; nothing shows that the compiler is at fault"
)
NOT_INTERPRETED = "It could not be run under the interpreter, so the kernel may be at fault all the same."
BARRIERS = (
    "Put tl.debug_barrier() between each store and the loads of the same memory. If it stays wrong, keep the "
    "num_stages and num_warps that are right, and report it to Triton."
)
MOST_ASSEMBLERS = 2
"""Of other versions, the newest."""
PATHS = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
OF_WRONG_ADDRESSES: tuple[ViolationKind, ...] = ("not_reproducible", "reads_uninitialised")
"""Violations that follow where a compiler stores elsewhere: what nobody wrote holds what was there."""
INTERPRETED_ELEMENTS = 2**21
"""Largest case that is interpreted."""


@dataclass(frozen=True)
class Culprit:
    """What is at fault, and what to do about it where that is more than to fix the kernel."""

    sentence: str
    step: str = ""


async def find_culprit(trial: ValidationTrial, case: Case, result: CaseResult, source: str) -> Culprit | None:
    """What is at fault in a case that is wrong on the trial's device; None where nothing is in doubt.

    It takes one call under the interpreter, then, where that is right, one in each other way.
    """
    if case.again_after is not None or not leaves_doubt(result):
        return None
    around = await versions(trial.setting.worker, trial.setting.runtime)
    right = await interpreted_call(trial, case)
    if right.get(INTERPRETED) is not False:
        right |= await compiled_calls(trial, case, around.assemblers)
    ptxas = around.assemblers[0].version if around.assemblers else ""
    return culprit_in(case.name, right, ptxas, matching_miscompilations(source, around))


async def compiled_wrongly(trial: ValidationTrial, source: str) -> Culprit | None:
    """What Triton gets wrong in compiled kernels like the file's; None where nothing is known.

    The interpreter does not show it.
    """
    if not shown_in(source, MISCOMPILATIONS):
        return None
    triton = (await versions(trial.setting.worker, trial.setting.runtime)).triton
    if not (known := shown_in(source, of_triton(triton))):
        return None
    name, avoid = known[0].name, known[0].avoid
    return Culprit(
        f"Triton {triton} compiles this wrongly, which the interpreter does not show: {name}. {avoid}"
    )


def leaves_doubt(result: CaseResult) -> bool:
    """Whether a compiler may be behind it: elements are wrong, or it crashed, and no other cause was seen."""
    if any(violation.kind not in OF_WRONG_ADDRESSES for violation in result.violations):
        return False
    wrong_elements = any(mismatch.first is not None for mismatch in result.mismatches)
    return result.status == "crashed" or wrong_elements or bool(result.violations)


async def interpreted_call(trial: ValidationTrial, case: Case) -> dict[str, bool]:
    """Whether it is right under the interpreter; empty where it cannot be run there."""
    if case.elements > INTERPRETED_ELEMENTS:
        return {}
    setting = replace(trial.setting, runtime=under_interpreter(trial.setting.runtime))
    candidate = replace(trial.candidate, setting=setting)
    right = await is_right(replace(trial, setting=setting, candidate=candidate), case, "interpreted")
    return {} if right is None else {INTERPRETED: right}


async def compiled_calls(
    trial: ValidationTrial, case: Case, assemblers: Sequence[Assembler]
) -> dict[str, bool]:
    """Whether it is right in each other way of compiling it that could be run."""
    ways = ways_to_compile(assemblers)
    answers: dict[str, bool | None] = dict.fromkeys(ways)

    async def call(way: str, number: int) -> None:
        compiled = replace(trial.candidate, compilation=ways[way])
        answers[way] = await is_right(replace(trial, candidate=compiled), case, f"compiled-{number}")

    async with task_group() as group:
        for number, way in enumerate(ways):
            group.start_soon(call, way, number)
    return {way: right for way, right in answers.items() if right is not None}


def ways_to_compile(assemblers: Sequence[Assembler]) -> dict[str, validation.Compilation]:
    """Each way by its name; `assemblers` starts with the one that is Triton's."""
    as_is = validation.Compilation()
    ways: dict[str, validation.Compilation] = {
        AGAIN: as_is,
        ONE_STAGE: replace(as_is, one_stage=True),
        OTHER_WARPS: replace(as_is, other_warps=True),
    }
    if assemblers:
        ways[UNOPTIMISED] = replace(as_is, environment={"DISABLE_PTXAS_OPT": "1"})
    for other in assemblers[1 : 1 + MOST_ASSEMBLERS]:
        ways[f"{PTXAS}{other.version}"] = replace(as_is, environment=dict.fromkeys(PATHS, other.path))
    return ways


async def is_right(trial: ValidationTrial, case: Case, name: str) -> bool | None:
    """How the case fares in processes of its own; None where that says nothing about its values."""
    candidate = replace(trial.candidate, name=f"{trial.candidate.name}-{name}")
    await trial.reference.stage(candidate.target, candidate.name)
    try:
        [judged] = await replace(trial, candidate=candidate).run([case])
    finally:
        await candidate.close()
    return {"passed": True, "limited": True, "failed": False, "crashed": False}.get(judged.result.status)


def culprit_in(
    case: str, right: Mapping[str, bool], ptxas: str, known: Sequence[Miscompilation] = ()
) -> Culprit | None:
    """What is at fault in a case that is wrong on the device, by the ways in which it is right and wrong.

    `right` has the ways in which it could be run. `ptxas`: the version that assembled what is wrong. `known`:
    what fits the kernel's source. None where it could not be run in any other way.
    """
    if not right:
        return None
    good = [way for way in right if right[way]]
    bad = [way for way in right if not right[way]]
    conclusion, step = blame(good, bad, ptxas)
    fared = [f"{word} {listed(ways)}" for word, ways in (("right", good), ("wrong", bad)) if ways]
    sentences = [f"{case} is {', '.join(fared)}: {conclusion}."]
    if conclusion == KERNEL:
        return Culprit(sentences[0])
    sentences += [NOT_INTERPRETED] * (INTERPRETED not in right)
    sentences += [f"Known to be compiled wrongly here: {entry.name} ({entry.sources[0]})." for entry in known]
    return Culprit(" ".join(sentences), " ".join(filter(None, (step, *(entry.avoid for entry in known)))))


def blame(good: Sequence[str], bad: Sequence[str], ptxas: str) -> tuple[str, str]:
    """What is at fault, and what to do."""
    if INTERPRETED in bad:
        return KERNEL, ""
    if AGAIN in good:
        return UNSTEADY, BARRIERS
    by_order = ONE_STAGE in good or OTHER_WARPS in good
    versions = [way.removeprefix(PTXAS) for way in good if way.startswith(PTXAS) and way != UNOPTIMISED]
    if versions or UNOPTIMISED in good:
        # Other code has other timing, which hides races.
        certain = bool(versions) and not by_order
        doubt = "" if certain else " most likely; a race that other code hides is not ruled out"
        other = f"ptxas {versions[0]}, named with TRITON_PTXAS_PATH" if versions else "a newer ptxas"
        step = (
            f"Compile it with {other}, or with other tile sizes, and report it with ptxas's version {ptxas}."
        )
        return f"ptxas {ptxas} is at fault{doubt}", step
    return (ORDER, BARRIERS) if by_order else (UNDETERMINED, "")
