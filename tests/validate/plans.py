"""Planning cases, and reading plans."""

from typing import Any

from pytorch_to_triton.inputs.case import Case, TensorArgument, tensors_in
from pytorch_to_triton.inputs.declaration import Declaration, parse_declaration
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.validate.cases import CasePlan, build_plan, plan_of
from pytorch_to_triton.validate.plan import CaseSizeLimits, PlanBuilder
from pytorch_to_triton.validate.plan import case_named as case_of

LIMIT = 10_000_000
SPAN = 2**36


def planned(inputs: dict[str, object], dims: dict[str, object], *requires: str, **asked: Any) -> CasePlan:
    return plan_cases(parse_declaration(inputs, dims, requires), **asked)


def plan_cases(declaration: Declaration, **asked: Any) -> CasePlan:
    return plan_of(builder_of(declaration, **asked))


def builder_of(
    declaration: Declaration, *, limit: int = LIMIT, span: int = SPAN, **asked: Any
) -> PlanBuilder:
    return build_plan(declaration, CaseSizeLimits(limit, span), **asked)


def case_for(declaration: Declaration, name: str, **asked: Any) -> Case:
    """The case of this name, planned or not."""
    return case_of(builder_of(declaration, all_mixtures=True, **asked), name)


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
