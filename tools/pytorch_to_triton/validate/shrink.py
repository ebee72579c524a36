"""The smallest case that is wrong in the same way as the one that the summary shows."""

from collections.abc import Iterator, Sequence

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.cases import case_for
from pytorch_to_triton.validate.conclusion import most_telling, wrong_of
from pytorch_to_triton.validate.plan import CaseSizeLimits
from pytorch_to_triton.validate.trial import ValidationTrial

SMALL = (1, 2, 3, 5, 17, 33, 65, 129, 257, 513, 1025, 4097)
"""Sizes that each dimension is tried at: tiny ones, and those just past a block."""


async def shrunk(
    trial: ValidationTrial, declaration: Declaration, results: Sequence[CaseResult], limits: CaseSizeLimits
) -> str | None:
    """The name of the smallest case found, None where there is nothing to shrink.

    One dimension after the other is made as small as the same kind of mistake allows; a case that crashes or
    runs out of time is left as it is.
    """
    wrong = [result for result in wrong_of(results) if result.mismatches or result.violations]
    if not wrong or not declaration.inputs:
        return None
    telling = most_telling(wrong)
    case = rebuilt(declaration, telling.name, limits)
    if case is None or case.again_after is not None:
        return None
    for dim in case.dims:
        smaller = list(with_smaller(declaration, case, dim, limits))
        judged = await trial.run(smaller) if smaller else []
        alike = (c for c, one in zip(smaller, judged, strict=True) if same_mistake(one.result, telling))
        case = next(alike, case)
    return case.name if case.name != telling.name else None


def with_smaller(declaration: Declaration, case: Case, dim: str, limits: CaseSizeLimits) -> Iterator[Case]:
    """The case at smaller sizes of one dimension, the smallest first."""
    for size in SMALL:
        if size < case.dims[dim]:
            name = " ".join(filter(None, (point_name({**case.dims, dim: size}), case.label)))
            if (smaller := rebuilt(declaration, name, limits)) is not None:
                yield smaller


def rebuilt(declaration: Declaration, name: str, limits: CaseSizeLimits) -> Case | None:
    """The case of that name, None where there is none."""
    try:
        return case_for(declaration, name, limit_elements=limits.elements, limit_span_bytes=limits.span_bytes)
    except BadInput:
        return None


def same_mistake(result: CaseResult, telling: CaseResult) -> bool:
    """Whether a result shares a kind of mismatch or violation with the telling one."""
    return bool(mistakes(result) & mistakes(telling))


def mistakes(result: CaseResult) -> set[str]:
    return {m.kind for m in result.mismatches} | {v.kind for v in result.violations}
