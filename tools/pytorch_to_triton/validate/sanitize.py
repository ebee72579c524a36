"""Which cases are run once more under compute-sanitizer, and what its hazards mean. Pure."""

import re
from collections.abc import Sequence

from pytorch_to_triton.inputs.case import Case, Layout, tensors_in
from pytorch_to_triton.profilers.sanitizer import Hazard
from pytorch_to_triton.schema.verdict import Violation, ViolationKind
from pytorch_to_triton.validate.behavior import OVERFLOW, violation
from pytorch_to_triton.validate.phrases import times

ELEMENTS = 2**16
"""Largest case: under the tool a kernel is many times slower, and sizes beyond a few blocks show no more."""
LAYOUTS: tuple[Layout, ...] = ("transposed", "sliced", "offset")
"""Those in which a tensor's elements do not lie where a careless kernel looks for them."""
FAR_BYTES = 2**30
"""An access so far from every allocation has lost the upper bits of its offset."""
ACCESSES: dict[str, tuple[ViolationKind, str]] = {
    "read": ("load_outside", "loads"),
    "write": ("store_outside", "stores"),
    "atomic": ("store_outside", "atomically changes"),
    "access": ("load_outside", "accesses"),
}
"""By the kind of a hazard in global memory."""
BARRIER = "Put a barrier between the write and the read, such as tl.debug_barrier()."
MISALIGNED = "Remove tl.multiple_of and the like where they do not hold; step by whole elements."
OUTSIDE = "Mask the access with the tensor's own length; check the strides."
BOUNDS = re.compile(r"^(?:Address|Access) is (?:out of bounds|misaligned)(?: and is )?")


def sample_cases(cases: Sequence[Case]) -> list[Case]:
    """A few small ones of a plan, one or two of every sort that shows a wrong access, in its order."""
    small = [case for case in cases if case.elements <= ELEMENTS]
    plain = [case for case in small if case.group in ("declared", "reduced")]
    combined = [case for case in small if case.group == "combined" and case.elements]
    first = cases[0].dtypes if cases else {}
    sorts = [
        plain[:1],  # the middle one leads a plan
        sorted(plain, key=lambda case: case.elements)[:1],
        [case for case in small if case.group == "odd" and not case.label][:2],
        [case for case in combined if 1 in case.dims.values()][:1],
        *(
            [case for case in combined if any(t.layout == layout for t in tensors_in(case.arguments))][:1]
            for layout in LAYOUTS
        ),
        [case for case in small if case.group in ("dtype", "odd") and case.dtypes != first][:1],
    ]
    names = {case.name for sort in sorts for case in sort}
    return [case for case in cases if case.name in names]


def violations(hazards: Sequence[Hazard]) -> tuple[Violation, ...]:
    """What the candidate may not do: accesses outside of tensors, misaligned ones, and races.

    A Triton kernel's shared memory is the compiler's: what is reported of it alone is in `remarks`. So are
    races between writes, which the tool reports of every reduction whose lanes round differently
    (github.com/triton-lang/triton/issues/7264).
    """
    return tuple(filter(None, map(_violation, hazards)))


def remarks(hazards: Sequence[Hazard]) -> tuple[str, ...]:
    """The hazards that are no violations, in a sentence each."""
    return tuple(
        f"compute-sanitizer reports for {_where(hazard)}: {_hazard_name(hazard)} "
        f"({times(hazard.count, 'time')}). "
        "It reports the same of right kernels, whose shared memory the compiler manages."
        for hazard in hazards
        if _violation(hazard) is None
    )


def _violation(hazard: Hazard) -> Violation | None:
    if hazard.kind in ACCESSES and hazard.space == "global":
        return _outside(hazard)
    if hazard.kind == "race":
        count = times(hazard.count, "hazard")
        message = f"{_where(hazard)} races on shared memory: {hazard.detail} ({count})."
        return violation("race", message, BARRIER, file=hazard.file, line=hazard.line)
    return None


def _outside(hazard: Hazard) -> Violation:
    kind, does = ACCESSES[hazard.kind]
    place = "at a misaligned address" if hazard.misaligned else "outside of every tensor"
    detail = BOUNDS.sub("", hazard.detail)
    at = f", {detail}" if detail else ""
    size = times(hazard.size_bytes or 1, "byte")
    message = f"{_where(hazard)} {does} {size} {place}{at} ({times(hazard.count, 'thread')})."
    overflow = not hazard.misaligned and (hazard.outside_bytes or 0) > FAR_BYTES
    suggestion = MISALIGNED if hazard.misaligned else OVERFLOW if overflow else OUTSIDE
    return violation(kind, message, suggestion, file=hazard.file, line=hazard.line, overflow=overflow)


def _hazard_name(hazard: Hazard) -> str:
    space = f" in {hazard.space} memory" if hazard.space else ""
    detail = f", {hazard.detail}" if hazard.detail else ""
    return f"{hazard.kind}{space}{detail}"


def _where(hazard: Hazard) -> str:
    """The kernel, and file and line where they are known."""
    at = f" ({hazard.file}:{hazard.line})" if hazard.file else ""
    return f"{hazard.kernel or 'A kernel'}{at}"
