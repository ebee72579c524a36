"""Limits: where a candidate that is right does less than PyTorch, beyond what is declared. Pure.

What is loud there is a limit, what is silent and wrong is a mistake. Each group of cases has a row in
references/validating.md.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton.inputs.case import Case, tensors_in
from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.verdict import (
    CaseResult,
    CaseStatus,
    Limit,
    LimitKind,
    Violation,
    ViolationKind,
)
from pytorch_to_triton.validate.behavior import OVERFLOW
from pytorch_to_triton.validate.phrases import cut, listed
from pytorch_to_triton.validate.run_outcome import INTERPRETER_ERROR, broke_the_device, names_dtypes
from pytorch_to_triton.worker.wire import Failure
from pytorch_to_triton.worker.wire.statistics import CaseStatistics

ANY_EXCEPTION: tuple[Group, ...] = ("layout", "large_stride", "empty", "beyond", "option", "mixed")
"""Beyond what is declared: any exception keeps a caller from wrong results."""
OWN_REFUSAL: tuple[Group, ...] = ("odd", "one")
"""Among the declared sizes: only a `raise` or `assert`, of the candidate or of Triton's compiler."""
UNLAUNCHED: tuple[ViolationKind, ...] = ("no_triton_kernel", "output_without_kernel")
"""Violations that a call does not show before it returns."""
CONSEQUENCES: tuple[ViolationKind, ...] = (
    "load_outside", "store_outside", "overrun", "race", "reads_uninitialised", "not_reproducible",
)  # fmt: skip
"""Violations that may follow from an offset that has lost its upper bits."""
MUST_SHARE = "must share a dtype"
LONGEST = 160
"""Characters of an exception's message in a limit."""
SUBJECTS: dict[Group, str] = {
    "odd": "odd sizes",
    "one": "sizes of one",
    "empty": "empty inputs",
    "beyond": "sizes beyond the declared ones",
    "layout": "other memory layouts",
    "large_stride": "rows far apart",
    "option": "other values of a number",
    "mixed": "mixtures of dtypes",
}
SIZES = ("right at the sizes that it accepts", "State the sizes in REQUIRES, or mask the last block.")
REACH: dict[Group, tuple[str, str]] = {
    **dict.fromkeys(OWN_REFUSAL, SIZES),
    "empty": ("right for one element and more", "Return early where there is nothing to do."),
    "beyond": ("right at the declared sizes", "Bound the size with REQUIRES, or loop over blocks."),
    "layout": ("right for contiguous inputs", "Pass strides to the kernel, or call contiguous()."),
    "large_stride": ("right for contiguous inputs", "Pass strides to the kernel, or call contiguous()."),
    "option": (
        "right at the declared value",
        "Compute with the number itself, and refuse no value that PyTorch takes.",
    ),
    "mixed": ("right where they share a dtype", "Convert each operand inside the kernel."),
}
"""Up to where a candidate that raises there is right, and how to lift the limit."""
OFFSETS_REACH = "right up to 2^31 elements of stride times index"


@dataclass(frozen=True)
class Strictness:
    """Limits that the caller does not accept."""

    int64_offsets: bool = False
    mixed_dtypes: bool = False


LENIENT = Strictness()


def refusal(case: Case, failure: Failure, violations: Iterable[Violation]) -> Limit | None:
    """The limit that an exception of the candidate's shows; None where it is a mistake."""
    condition = refused_condition(case, failure)
    if condition is None or broke_the_device(failure) or any(violations):
        return None
    mixture = condition == "mixed"
    of_dtypes: LimitKind = "dtypes_named" if names_dtypes(failure) else "dtypes"
    up_to, fix = REACH[condition]
    return Limit(
        kind=of_dtypes if mixture else "exception",
        subject=listed(mixed(case)) if mixture else SUBJECTS[condition],
        what=f"{MUST_SHARE}, or it raises {in_short(failure)}" if mixture else f"raise {in_short(failure)}",
        up_to=up_to,
        fix=fix,
        file=failure.file,
        line=failure.line,
        tensors=mixed(case) if mixture else (),
        cases=(case.name,),
    )


def refused_condition(case: Case, failure: Failure) -> Group | None:
    """Which of the case's conditions a candidate may refuse; None: none."""
    allowed = (*ANY_EXCEPTION, *OWN_REFUSAL) if failure.statement else ANY_EXCEPTION
    return next((group for group in allowed if group in case.reasons), None)


def in_short(failure: Failure) -> str:
    """The exception in short, with its line; of one without words the statement that raised it."""
    place = f" at {Path(failure.file).name}:{failure.line}" if failure.file else ""
    words = cut(failure.message.partition("\n")[0] or failure.statement or "no message", LONGEST)
    # The interpreter quotes what a kernel raised.
    return f"{words}{place}" if failure.type == INTERPRETER_ERROR else f"{failure.type}{place}: {words}"


def mixed(case: Case) -> tuple[str, ...]:
    """The floating tensors of a case."""
    return tuple(tensor.name for tensor in tensors_in(case.arguments) if "float" in tensor.dtype)


def other_dtype(case: Case, statistics: CaseStatistics) -> Limit | None:
    """The limit of a candidate whose values are right for a mixture of dtypes, in another than PyTorch's."""
    different = [output for output in statistics.outputs if output.differs]
    if case.group != "mixed" or not different or not statistics.same_outputs:
        return None
    right = all(output.right_values for output in different)
    if not right or any(output.failing for output in statistics.outputs):
        return None
    first = different[0]
    return Limit(
        kind="dtypes",
        subject=listed(mixed(case)),
        what=f"{MUST_SHARE}, or {first.path} is {first.candidate.dtype} instead of {first.pytorch.dtype}",
        up_to="right where they share a dtype",
        fix="Allocate the output in torch.result_type of the inputs.",
        tensors=mixed(case),
        cases=(case.name,),
    )


def with_limits(
    results: Sequence[CaseResult], cases: Iterable[Case], strictness: Strictness = LENIENT
) -> list[CaseResult]:
    """The results, 32-bit offsets told apart from mistakes; a limit that is not accepted counts as wrong."""
    by_name = {case.name: case for case in cases}
    strided = strided_tensors(results, by_name)
    found = []
    for result in results:
        if case := by_name.get(result.name):
            found.append(with_strictness(offsets_limited(result, case, strided), case, strictness))
        else:
            found.append(result)
    return found


def offsets_limited(result: CaseResult, case: Case, strided: Collection[str]) -> CaseResult:
    """A failed case of large strides as limited, where 32-bit offsets are why.

    They are where an access lies 2^30 elements off its tensor, and, on a device that reports no more, where
    other strides of the same tensor are right.
    """
    if case.group != "large_stride" or result.status not in ("failed", "raised", "crashed"):
        return result
    [tensor] = [tensor.name for tensor in tensors_in(case.arguments) if tensor.layout == "large_stride"]
    wrapped = sorted((v for v in result.violations if v.overflow), key=lambda v: v.line or 0)
    others = [v for v in result.violations if v.kind not in (*CONSEQUENCES, *UNLAUNCHED)]
    if others or not (wrapped or tensor in strided):
        return result
    first = wrapped[0] if wrapped else None
    since = f" from line {first.line} on" if first and first.line else ""
    limit = Limit(
        kind="offsets",
        subject=f"offsets of {tensor}",
        what=f"are 32-bit{since}",
        up_to=OFFSETS_REACH,
        fix=OVERFLOW,
        file=first.file if first else None,
        line=first.line if first else None,
        tensors=(tensor,),
        cases=(case.name,),
    )
    return result.model_copy(update={"status": "limited", "limit": limit})


def strided_tensors(results: Sequence[CaseResult], cases: Mapping[str, Case]) -> set[str]:
    """The tensors whose cases of other strides all passed, and which have one."""
    found: dict[str, bool] = {}
    for result in results:
        case = cases.get(result.name)
        for tensor in tensors_in(case.arguments) if case and "layout" in case.reasons else ():
            if tensor.layout in ("transposed", "sliced"):
                found[tensor.name] = found.get(tensor.name, True) and result.status == "passed"
    return {name for name, passed in found.items() if passed}


def with_strictness(result: CaseResult, case: Case, strictness: Strictness) -> CaseResult:
    """A limited case as wrong, where its limit is not accepted."""
    if result.status != "limited" or not refused(result, case, strictness):
        return result
    status: CaseStatus = "failed" if result.mismatches or result.violations else "raised"
    return result.model_copy(update={"status": status})


def refused(result: CaseResult, case: Case, strictness: Strictness) -> bool:
    """Whether the caller does not accept this limit."""
    kind = result.limit.kind if result.limit else None
    if kind == "offsets":
        return strictness.int64_offsets or case.declared
    return kind == "dtypes" and strictness.mixed_dtypes


def limits_in(results: Iterable[CaseResult]) -> tuple[Limit, ...]:
    """The limits of all limited cases, those that are the same as one."""
    alike: dict[tuple[str, int | None], list[Limit]] = {}
    for limit in (result.limit for result in results if result.status == "limited"):
        if limit is not None:
            same = limit.subject if limit.kind in ("dtypes", "dtypes_named") else limit.what
            alike.setdefault((same, limit.line), []).append(limit)
    return tuple(joined(limits) for limits in alike.values())


def joined(limits: Sequence[Limit]) -> Limit:
    """One limit for several that differ only in what they are about."""
    first = limits[0]
    subject = listed(list(dict.fromkeys(limit.subject for limit in limits)))
    tensors = tuple(dict.fromkeys(name for limit in limits for name in limit.tensors))
    if all(limit.kind == "offsets" for limit in limits):
        subject = f"offsets of {listed(tensors)}"
    cases = tuple(name for limit in limits for name in limit.cases)
    return first.model_copy(update={"subject": subject, "tensors": tensors, "cases": cases})
