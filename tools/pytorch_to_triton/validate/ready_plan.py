"""A plan that is ready to be tried: the cases that a request means, out of those that a problem allows.

A plan counts the elements of inputs, which says nothing about an N x N value of N rows. So before anything is
run at sizes of the tool's own making, the reference is called at two small points whose sizes are primes.
Those that divide a value's number of elements say which sizes it grows with.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from pytorch_to_triton.errors import BadInput, TargetBroken
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.inputs.timing_dims import named_points
from pytorch_to_triton.schema.case_group import DECLARED_GROUPS
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult, NoResult, Skip
from pytorch_to_triton.targets.describe import EXAMPLES_CASE, examples_case, source_of
from pytorch_to_triton.targets.first_call import CORRECT_IT
from pytorch_to_triton.targets.problem import Problem
from pytorch_to_triton.validate.cases import (
    CasePlan,
    add_multiples,
    add_past_groups,
    add_points,
    add_thresholds,
    build_plan,
    plan_of,
)
from pytorch_to_triton.validate.host_code import groups_in, multiples_in, numbers_in, switches_in
from pytorch_to_triton.validate.plan import CaseSizeLimits, PlanBuilder, case_named
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.target_worker import ReferenceProcess

PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
MOST_ELEMENTS = 2**18
"""Of the inputs at a point of primes: a call there takes milliseconds."""
PAST_DECLARED = 2
"""A value may have so many times the elements that it has at declared sizes: one row more is worth trying."""
HINTS: dict[NoResult, str] = {
    "raised": CORRECT_IT,
    "crashed": "Take what ends or crashes the process out of the function, or declare inputs that it takes.",
    "timed_out": "Allow more with --timeout, or declare smaller sizes, or values for which it ends.",
}
"""Other reasons are not about the reference's own code."""


@dataclass(frozen=True)
class ReadyPlan:
    """The cases that a candidate is tried on, and what further ones are made from."""

    cases: CasePlan
    builder: PlanBuilder
    source: str
    """Of the candidate's file."""
    named: tuple[Point, ...] = ()
    """Sizes that the caller named beside the declared ones."""


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
    named = named_points(problem.declaration, request.points)
    add_points(builder, named)
    add_past_groups(builder, groups_in(source, problem.declaration))
    add_multiples(builder, multiples_in(source, problem.declaration))
    add_thresholds(builder, numbers_in(source_of(problem.reference.target), problem.reference.name))
    cases = requested_cases(all_cases(problem.reference, request, builder), request, builder)
    return ReadyPlan(cases, builder, source, named)


def all_cases(reference: Description, request: ValidationRequest, builder: PlanBuilder) -> CasePlan:
    """The declaration's cases; of a file with get_inputs() also the call that it generates itself.

    That call is then the declared one, and cases of the same shapes with other values, and of other sizes,
    are generated ones. Where it is too large, the small sizes stand in for it.
    """
    plan = plan_of(builder)
    call = examples_case(reference)
    if call is None or request.options.inputs:
        return plan
    tensors = (example for example in reference.examples or () if example.form == "tensor")
    elements, most = sum(prod(tensor.shape) for tensor in tensors), builder.limits.own_elements
    if elements > most:
        why = f"{elements:,} elements are over this run's limit of {most:,}"
        large = Skip(what=EXAMPLES_CASE, why=why, declared=True)
        return CasePlan(cases=plan.cases, skipped=(*plan.skipped, large))
    others = (beside_own(case, builder.declaration) for case in plan.cases)
    return CasePlan(cases=(call, *others), skipped=plan.skipped)


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


async def without_too_large(reference: ReferenceProcess, plan: ReadyPlan) -> ReadyPlan:
    """The plan without the undeclared sizes at which the reference computes a value of more elements than the
    limit, and than it computes at declared ones: they are listed as skipped. Named sizes have a limit of
    their own.
    """
    limits, declaration = plan.builder.limits, plan.builder.declaration
    # The call of get_inputs() has no sizes of its own.
    points = {point_name(case.dims): case.dims for case in plan.cases.cases if case.dims}
    sizes = sizes_of(declaration)
    undeclared = [p for p, dims in points.items() if any(n not in sizes[dim] for dim, n in dims.items())]
    # Of a value that has all dims, and one of them twice.
    if all(
        prod(points[name].values()) * max(points[name].values()) <= limits.elements for name in undeclared
    ):
        return plan
    measured = calls(plan.builder)
    growths = [Growth(case.dims, primes, await reference.measure(case)) for case, primes in measured]
    if not growths:
        return plan
    # A fixed size may be a multiple of a prime: then the other call shows the smaller number, which is right.
    largest = {name: min(growth.largest_at(dims) for growth in growths) for name, dims in points.items()}
    usual = max([limits.elements, *(PAST_DECLARED * largest[name] for name in points.keys() - undeclared)])
    of_named = limits.named_elements or usual
    most = {name: of_named if points[name] in plan.named else usual for name in undeclared}
    left_out = [name for name in undeclared if largest[name] > most[name]]
    why = "the reference computes a value of {:,} elements there, over this run's limit of {:,}"
    skips = (
        Skip(what=name, why=why.format(largest[name], most[name]), declared=points[name] in plan.named)
        for name in left_out
    )
    kept = tuple(case for case in plan.cases.cases if point_name(case.dims) not in left_out)
    return replace(plan, cases=CasePlan(cases=kept, skipped=(*plan.cases.skipped, *skips)))


def sizes_of(declaration: Declaration) -> dict[str, tuple[int, ...]]:
    """Each dim's declared sizes, and the one at which the file generates its inputs."""
    generated = declaration.generated
    return {
        dim: (*sizes, generated[dim]) if dim in generated else sizes
        for dim, sizes in declaration.dims.items()
    }


@dataclass(frozen=True)
class Growth:
    """How many elements values have at one point, of which each dim's size has a prime of its own."""

    point: Mapping[str, int]
    primes: Mapping[str, int]
    elements: Sequence[int]

    def largest_at(self, point: Mapping[str, int]) -> int:
        """Elements of the largest value at other sizes."""
        largest = 0
        for count in filter(None, self.elements):
            grown = count
            for name, prime in self.primes.items():
                power = prime
                while count % power == 0:
                    grown = grown * point[name] // self.point[name]
                    power *= prime
            largest = max(largest, grown)
        return largest


def calls(plan: PlanBuilder) -> Iterator[tuple[Case, Mapping[str, int]]]:
    """Up to two calls at small sizes with a prime of its own each, and these primes."""
    dims = plan.declaration.dims
    for first in (0, len(dims)) if plan.declaration.inputs else ():
        primes = dict(zip(dims, PRIMES[first:], strict=False))
        multiples = {name: prime * (gcd(*dims[name]) or 1) for name, prime in primes.items()}
        with plan.limited_to(MOST_ELEMENTS):
            cases = [plan.combined(point, ()) for point in (primes, multiples) if len(point) == len(dims)]
        if case := next(filter(None, cases), None):
            yield case, primes


def without_timeouts(
    results: Sequence[CaseResult], cases: Iterable[Case], declaration: Declaration
) -> list[CaseResult]:
    """The results, with time-outs at sizes above the declared ones not judged.

    At sizes up to the declared ones a candidate that does not return in time never does.
    """
    largest = {dim: max(sizes) for dim, sizes in sizes_of(declaration).items()}
    larger = {case.name for case in cases if any(size > largest[dim] for dim, size in case.dims.items())}
    late = [result.status == "timed_out" and result.name in larger for result in results]
    why = "{}, at sizes that are not declared"
    return [
        result.model_copy(update={"status": "skipped", "why": why.format(result.why)}) if is_late else result
        for result, is_late in zip(results, late, strict=True)
    ]


def without_refused_combinations(results: Sequence[CaseResult], cases: Iterable[Case]) -> list[CaseResult]:
    """The results, with sizes that PyTorch refuses together, but each beside others, not judged.

    The plan has put them together, not the declaration. A declared size that PyTorch always refuses stays
    open.
    """
    points = {case.name: case.dims.items() for case in cases}
    taken = {
        size
        for result in results
        if result.group in DECLARED_GROUPS and result.status != "reference_raised"
        for size in points[result.name]
    }

    def is_refused(result: CaseResult) -> bool:
        plain = result.group in ("declared", "reduced")
        raised = (result.status, result.reason) == ("reference_raised", "raised")
        return plain and raised and taken.issuperset(points[result.name])

    left_out = {"status": "skipped", "group": "combined"}
    return [each.model_copy(update=left_out) if is_refused(each) else each for each in results]


def not_judged(results: Iterable[CaseResult]) -> Iterator[Skip]:
    """The cases that ran out of time and say nothing, as what was not tried."""
    for result in results:
        if (result.status, result.reason) == ("skipped", "timed_out"):
            yield Skip(what=result.name, why=result.why)


def refuse_empty(plan: CasePlan) -> None:
    """Raises BadInput where nothing of what is declared can be run."""
    if not plan.cases and plan.skipped:
        first = plan.skipped[0]
        raise BadInput(
            f"No declared case can be run: {first.what}: {first.why}.",
            "Declare sizes within that, with DIMS or --dim, or a smaller shape with --input.",
        )


def refuse_unrunnable_reference(
    results: Sequence[CaseResult], reference: Target, requested: Sequence[str] = ()
) -> None:
    """Raises TargetBroken where the reference fails at the middle of the declared sizes, the first case.

    One that fails at other cases only leaves them undecided, and so do cases that were `requested` by name.
    """
    declared = [result for result in results if result.group in DECLARED_GROUPS]
    if requested or not declared or declared[0].status != "reference_raised":
        return
    first, count = declared[0], sum(result.status == "reference_raised" for result in declared)
    if first.reason in HINTS:
        raise TargetBroken(
            f"{reference} cannot be used. {first.why.rstrip(' :.')}, at {first.name} and in {count} of "
            f"{len(declared)} declared cases.",
            HINTS[first.reason],
        )
