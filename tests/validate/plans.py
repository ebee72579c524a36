"""Planning cases, and reading plans."""

from pytorch_to_triton.inputs.case import Case, TensorArgument, tensors_in
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.validate.cases import CasePlan, plan_cases

LIMIT = 10_000_000
SPAN = 2**36


def plan_of(
    inputs: dict[str, object],
    dims: dict[str, object],
    *requires: str,
    limit: int = LIMIT,
    seed: int | None = None,
) -> CasePlan:
    declaration = parse_declaration(inputs, dims, requires)
    return plan_cases(declaration, limit_elements=limit, limit_span_bytes=SPAN, seed=seed)


def names(plan: CasePlan, group: str | None = None) -> list[str]:
    return [case.name for case in plan.cases if group in (None, case.group)]


def points(plan: CasePlan, group: str) -> list[Point]:
    return [case.dims for case in plan.cases if case.group == group]


def reasons(plan: CasePlan) -> dict[str, str]:
    return {skip.what: skip.why for skip in plan.skipped}


def case_named(plan: CasePlan, name: str) -> Case:
    return next(case for case in plan.cases if case.name == name)


def tensor(case: Case, name: str) -> TensorArgument:
    return next(found for found in tensors_in(case.arguments) if found.name == name)
