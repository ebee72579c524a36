"""Whether the kernel, its races or the compiler is at fault. Pure: how a case fared in, sentences out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytorch_to_triton.hardware.miscompilations import Miscompilation
from pytorch_to_triton.validate.phrases import listed

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


@dataclass(frozen=True)
class Culprit:
    """What is at fault, and what to do about it where that is more than to fix the kernel."""

    sentence: str
    step: str = ""


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
    conclusion, step = concluded(good, bad, ptxas)
    fared = [f"{word} {listed(ways)}" for word, ways in (("right", good), ("wrong", bad)) if ways]
    sentences = [f"{case} is {', '.join(fared)}: {conclusion}."]
    if conclusion == KERNEL:
        return Culprit(sentences[0])
    sentences += [NOT_INTERPRETED] * (INTERPRETED not in right)
    sentences += [f"Known to be compiled wrongly here: {entry.name} ({entry.sources[0]})." for entry in known]
    return Culprit(" ".join(sentences), " ".join(filter(None, (step, *(entry.avoid for entry in known)))))


def concluded(good: Sequence[str], bad: Sequence[str], ptxas: str) -> tuple[str, str]:
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
