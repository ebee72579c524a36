"""Planning cases, and reading plans."""

from collections.abc import Iterable, Sequence

from pytorch_to_triton.inputs.case import Case, TensorArgument, tensors_in
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.validate.cases import CasePlan, build_plan, plan_of
from pytorch_to_triton.validate.host_code import Switch
from pytorch_to_triton.validate.plan import CaseSizeLimits
from pytorch_to_triton.validate.plan import case_named as case_of

LIMIT = 10_000_000
SPAN = 2**36


def planned(
    inputs: dict[str, object],
    dims: dict[str, object],
    *requires: str,
    limit: int = LIMIT,
    seed: int | None = None,
    switches: Sequence[Switch] = (),
) -> CasePlan:
    return plan_cases(parse_declaration(inputs, dims, requires), limit=limit, seed=seed, switches=switches)


def plan_cases(
    declaration: Declaration,
    *,
    limit: int = LIMIT,
    span: int = SPAN,
    seed: int | None = None,
    switches: Sequence[Switch] = (),
    configurations: int = 1,
    all_mixtures: bool = False,
) -> CasePlan:
    builder = build_plan(
        declaration,
        CaseSizeLimits(limit, span),
        seed=seed,
        switches=switches,
        configurations=configurations,
        all_mixtures=all_mixtures,
    )
    return plan_of(builder)


def case_for(declaration: Declaration, name: str, *, limit: int = LIMIT, span: int = SPAN) -> Case:
    """The case of this name, planned or not."""
    (case,) = cases_for(declaration, [name], limit=limit, span=span)
    return case


def cases_for(
    declaration: Declaration, names: Iterable[str], *, limit: int = LIMIT, span: int = SPAN
) -> list[Case]:
    builder = build_plan(declaration, CaseSizeLimits(limit, span), all_mixtures=True)
    return [case_of(builder, name) for name in names]


def names(plan: CasePlan, group: str | None = None) -> list[str]:
    return [case.name for case in plan.cases if group in (None, case.group)]


def points(plan: CasePlan, group: str) -> list[Point]:
    return [case.dims for case in plan.cases if case.group == group]


def reasons(plan: CasePlan) -> dict[str, str]:
    return {skip.what: skip.why for skip in plan.skipped}


def case_named(plan: CasePlan, name: str) -> Case:
    return next(case for case in plan.cases if case.name == name)


def tensor(case: Case, name: str) -> TensorArgument:
    return next(argument for argument in tensors_in(case.arguments) if argument.name == name)
