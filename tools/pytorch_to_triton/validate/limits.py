"""Limits: where a candidate that is right does less than PyTorch, beyond what is declared. Pure.

What is loud there is a limit, what is silent and wrong is a mistake. Each group of cases has a row in
references/validating.md.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
from pytorch_to_triton.validate.run_outcome import INTERPRETER_ERROR
from pytorch_to_triton.worker.wire import Failure
from pytorch_to_triton.worker.wire.statistics import CaseStatistics

UNMADE: tuple[ViolationKind, ...] = ("output_without_kernel", "stores_nothing")
UNLAUNCHED: tuple[ViolationKind, ...] = ("no_triton_kernel", *UNMADE)
"""Violations that a call does not show before it returns."""
CONSEQUENCES: tuple[ViolationKind, ...] = (
    "load_outside", "store_outside", "overrun", "race", "reads_uninitialised", "not_reproducible",
)  # fmt: skip
"""Violations that may follow from an offset that has lost its upper bits."""
BROKEN_DEVICE = re.compile(
    r"illegal memory access|misaligned address|launch failure|device-side assert", re.I
)
"""Errors of CUDA that are no refusals: memory was touched that is not there."""
DTYPES = re.compile(r"dtype|float(16|32|64)|bfloat16|float8|half|double", re.I)
LONGEST = 160
"""Characters of an exception's message in a limit."""
SIZES = "right at the sizes that it accepts", "State the sizes in REQUIRES, or mask the last block."
STRIDES = "right for contiguous inputs", "Pass strides to the kernel, or call contiguous()."
SHARED = "right where they share a dtype"
REFUSABLE: dict[Group, tuple[str, str, str]] = {
    "layout": ("other memory layouts", *STRIDES),
    "large_stride": ("rows far apart", *STRIDES),
    "empty": ("empty inputs", "right for one element and more", "Return early where there is nothing to do."),
    "beyond": (
        "sizes beyond the declared ones",
        "right at the declared sizes",
        "Bound the size with REQUIRES, or loop over blocks.",
    ),
    "option": (
        "other values of a number",
        "right at the declared value",
        "Compute with the number itself, and refuse no value that PyTorch takes.",
    ),
    "mixed": ("mixtures of dtypes", SHARED, "Convert each operand inside the kernel."),
    "odd": ("odd sizes", *SIZES),
    "one": ("sizes of one", *SIZES),
}
"""What a right candidate may refuse, up to where it is right then, and how to lift the limit. Of a case's
conditions the first counts."""
DECLARED: tuple[Group, ...] = ("odd", "one")
"""Among the declared sizes only a `raise` or `assert` refuses, of the candidate or of Triton's compiler.
Beyond them any exception keeps a caller from wrong results."""


def refusal(case: Case, failure: Failure, violations: Iterable[Violation]) -> Limit | None:
    """The limit that an exception of the candidate's shows; None where it is a mistake."""
    conditions = (group for group in REFUSABLE if group in case.reasons)
    condition = next((group for group in conditions if failure.statement or group not in DECLARED), None)
    if condition is None or BROKEN_DEVICE.search(failure.message) or any(violations):
        return None
    subject, up_to, fix = REFUSABLE[condition]
    place: dict[str, Any] = {"file": failure.file, "line": failure.line}
    raised = in_short(failure)
    if condition == "mixed":
        kind: LimitKind = "dtypes_named" if DTYPES.search(failure.named) else "dtypes"
        return of_mixture(case, kind, f"it raises {raised}", fix, **place)
    about = {"subject": subject, "what": f"raise {raised}", "up_to": up_to, "fix": fix}
    return Limit(kind="exception", cases=(case.name,), **about, **place)


def of_mixture(case: Case, kind: LimitKind, otherwise: str, fix: str, **place: Any) -> Limit:
    """That the case's floating tensors must share a dtype, or what happens otherwise."""
    tensors = tuple(tensor.name for tensor in tensors_in(case.arguments) if "float" in tensor.dtype)
    return Limit(
        kind=kind,
        subject=listed(tensors),
        what=f"must share a dtype, or {otherwise}",
        up_to=SHARED,
        fix=fix,
        tensors=tensors,
        cases=(case.name,),
        **place,
    )


def in_short(failure: Failure) -> str:
    """The exception in short, with its line; of one without words the statement that raised it."""
    place = f" at {Path(failure.file).name}:{failure.line}" if failure.file else ""
    words = cut(failure.message.partition("\n")[0] or failure.statement or "no message", LONGEST)
    # The interpreter quotes what a kernel raised.
    return f"{words}{place}" if failure.type == INTERPRETER_ERROR else f"{failure.type}{place}: {words}"


def other_dtype(case: Case, statistics: CaseStatistics) -> Limit | None:
    """The limit of a candidate whose values are right for a mixture of dtypes, in another than PyTorch's."""
    different = [output for output in statistics.outputs if output.differs]
    if case.group != "mixed" or not different or not statistics.same_outputs:
        return None
    right = all(output.right_values for output in different)
    if not right or any(output.failing for output in statistics.outputs):
        return None
    ours, theirs = different[0].candidate.dtype, different[0].pytorch.dtype
    return of_mixture(
        case,
        "dtypes",
        f"{different[0].path} is {ours} instead of {theirs}",
        "Allocate the output in torch.result_type of the inputs.",
    )


def with_limits(
    results: Sequence[CaseResult],
    cases: Iterable[Case],
    refused: Collection[LimitKind] = (),
    *,
    every_access: bool = False,
) -> list[CaseResult]:
    """The results, 32-bit offsets told apart from mistakes; limits of the `refused` kinds count as wrong.

    `every_access`: the runtime reports each access that lies outside of its tensor, as the interpreter does.
    """
    by_name = {case.name: case for case in cases}
    strided = set[str]() if every_access else strided_tensors(results, by_name)
    pairs = [(result, by_name[result.name]) for result in results]
    return [counted_as_wrong(offsets_limited(result, case, strided), case, refused) for result, case in pairs]


def offsets_limited(result: CaseResult, case: Case, strided: Collection[str]) -> CaseResult:
    """A failed case of large strides as limited, where 32-bit offsets are why.

    They are where an access lies 2^30 elements off its tensor, and, on a device that reports no accesses,
    where other strides of the same tensor are right.
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
        up_to="right up to 2^31 elements of stride times index",
        fix=OVERFLOW,
        file=first.file if first else None,
        line=first.line if first else None,
        tensors=(tensor,),
        cases=(case.name,),
    )
    return result.model_copy(update={"status": "limited", "limit": limit})


def strided_tensors(results: Sequence[CaseResult], cases: Mapping[str, Case]) -> set[str]:
    """The tensors whose cases of other strides all passed, and which have one."""
    tried = [
        (tensor.name, result.status == "passed")
        for result in results
        if "layout" in cases[result.name].reasons
        for tensor in tensors_in(cases[result.name].arguments)
        if tensor.layout in ("transposed", "sliced")
    ]
    return {name for name, _ in tried} - {name for name, passed in tried if not passed}


def counted_as_wrong(result: CaseResult, case: Case, refused: Collection[LimitKind]) -> CaseResult:
    """A limited case as wrong, where the caller does not accept its limit, or the declaration reaches it."""
    kind = result.limit.kind if result.limit else None
    if result.status != "limited" or not (kind in refused or (kind == "offsets" and case.declared)):
        return result
    status: CaseStatus = "failed" if result.mismatches or result.violations else "raised"
    return result.model_copy(update={"status": status})


def limits_in(results: Iterable[CaseResult]) -> tuple[Limit, ...]:
    """The limits of all limited cases, those that are the same as one."""
    alike: dict[tuple[str, int | None], list[Limit]] = {}
    for limit in (result.limit for result in results if result.status == "limited"):
        if limit is not None:
            same = limit.subject if limit.kind in ("dtypes", "dtypes_named") else limit.what
            alike.setdefault((same, limit.line), []).append(limit)
    return tuple(join(limits) for limits in alike.values())


def join(limits: Sequence[Limit]) -> Limit:
    """One limit for several that differ only in what they are about."""
    first = limits[0]
    subject = listed(list(dict.fromkeys(limit.subject for limit in limits)))
    tensors = tuple(dict.fromkeys(name for limit in limits for name in limit.tensors))
    if all(limit.kind == "offsets" for limit in limits):
        subject = f"offsets of {listed(tensors)}"
    cases = tuple(name for limit in limits for name in limit.cases)
    return first.model_copy(update={"subject": subject, "tensors": tensors, "cases": cases})
