"""A plan that is ready to be tried: the cases that a request means, out of those that a problem allows."""

import math
from dataclasses import dataclass

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.schema.description import Description, Example
from pytorch_to_triton.schema.verdict import Skip
from pytorch_to_triton.targets.describe import EXAMPLES_CASE, examples_case, source_of
from pytorch_to_triton.targets.problem import Problem
from pytorch_to_triton.validate.cases import CasePlan, build_plan, plan_of
from pytorch_to_triton.validate.host_code import switches_in
from pytorch_to_triton.validate.plan import CaseSizeLimits, PlanBuilder, case_named
from pytorch_to_triton.validate.request import ValidationRequest


@dataclass(frozen=True)
class ReadyPlan:
    """The cases that a candidate is tried on, and what further ones are made from."""

    cases: CasePlan
    builder: PlanBuilder
    source: str
    """Of the candidate's file."""


def ready_plan(
    request: ValidationRequest, problem: Problem, limits: CaseSizeLimits, *, seed: int
) -> ReadyPlan:
    """The candidate's cases. Raises BadInput for a name that stands for no case."""
    source = source_of(request.candidate)
    builder = build_plan(
        problem.declaration,
        limits,
        seed=seed,
        switches=switches_in(source, problem.declaration),
        configurations=problem.candidate.configurations,
        all_mixtures=request.require_mixed_dtypes,
    )
    return ReadyPlan(
        requested_cases(all_cases(problem.reference, request, builder), request, builder), builder, source
    )


def all_cases(reference: Description, request: ValidationRequest, builder: PlanBuilder) -> CasePlan:
    """The declaration's cases; of a file with get_inputs() also the call that it generates itself.

    That call is then the declared one, and cases of the same shapes with other values, and of other sizes,
    are generated ones. Where it is too large, the small sizes stand in for it.
    """
    plan = plan_of(builder)
    call = examples_case(reference)
    if call is None or request.options.inputs:
        return plan
    elements, most = sum(map(elements_of, reference.examples or ())), builder.limits.own_elements
    if elements > most:
        why = f"{elements:,} elements are over this run's limit of {most:,}"
        return CasePlan(
            cases=plan.cases, skipped=(*plan.skipped, Skip(what=EXAMPLES_CASE, why=why, declared=True))
        )
    return CasePlan(
        cases=(call, *(beside_own(case, builder.declaration) for case in plan.cases)), skipped=plan.skipped
    )


def beside_own(case: Case, declaration: Declaration) -> Case:
    """A case beside the call of get_inputs(): other values at its sizes, or sizes that it does not have."""
    if case.group != "declared":
        return case
    return case.model_copy(update={"group": "special" if case.dims == declaration.generated else "beyond"})


def requested_cases(plan: CasePlan, request: ValidationRequest, builder: PlanBuilder) -> CasePlan:
    """The plan's cases that the request names, and others that it spells out; without names the whole plan.

    Raises BadInput for a name that stands for no case.
    """
    if not request.cases:
        return plan
    by_name = {case.name: case for case in plan.cases}
    named: dict[str, Case] = {}
    for name in request.cases:
        case = by_name.get(name) or case_named(builder, name)
        if case.again_after is not None and case.again_after in by_name:
            named[case.again_after] = by_name[case.again_after]
        named[name] = case
    return CasePlan(cases=tuple(named.values()), skipped=())


def elements_of(example: Example) -> int:
    return math.prod(example.shape) if example.form == "tensor" else 0
