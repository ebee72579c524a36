"""validate: does a kernel compute what its reference computes, wherever kernels are known to break?"""

import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from pytorch_to_triton import places
from pytorch_to_triton.errors import MissingRequirement, TargetBroken, TargetNotFound
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.jobs.task_group import task_group
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Role
from pytorch_to_triton.schema.verdict import CaseResult, Skip, Verdict, Violation
from pytorch_to_triton.targets.describe import describe
from pytorch_to_triton.targets.memory_limit import refuse_too_large
from pytorch_to_triton.targets.problem import Problem, problem_of, reference_of
from pytorch_to_triton.validate.at_fault import NO_CULPRIT, Culprit, compiled_wrongly, find_culprit
from pytorch_to_triton.validate.behavior import never_stored, violations_of_traces
from pytorch_to_triton.validate.compiler_check import check_compiler, compiled
from pytorch_to_triton.validate.conclusion import (
    decide,
    most_telling,
    next_step_of,
    summary_of,
    unseen,
    wrong_of,
)
from pytorch_to_triton.validate.host_code import kernels_in
from pytorch_to_triton.validate.limits import limits_in, with_limits
from pytorch_to_triton.validate.memory_check import TOOLS, MemoryCheck, check_memory, under_interpreter
from pytorch_to_triton.validate.notes import behavior_of, loops_of_one_turn, notes_of, notes_on
from pytorch_to_triton.validate.phrases import times
from pytorch_to_triton.validate.plan import CaseSizeLimits
from pytorch_to_triton.validate.policy import Policy
from pytorch_to_triton.validate.ready_plan import (
    ReadyPlan,
    not_judged,
    ready_plan,
    refuse_empty,
    refuse_unrunnable_reference,
    without_refused_combinations,
    without_timeouts,
    without_too_large,
)
from pytorch_to_triton.validate.reduction import (
    Reduction,
    reduce_failure,
    retry_milder,
    with_blame,
    with_trials_blamed,
)
from pytorch_to_triton.validate.request import ValidationRequest, command
from pytorch_to_triton.validate.target_worker import (
    LostAnswer,
    ReferenceProcess,
    ValidationSetting,
    exchange_folder,
)
from pytorch_to_triton.validate.trial import CandidateWorkers, JudgedCase, ValidationTrial, device_workers
from pytorch_to_triton.validate.unreached import unreached_lines
from pytorch_to_triton.worker.wire.observation import Observation

INTERPRETER_ELEMENTS = 2**21
"""Largest case under the interpreter: seconds, not minutes, of a kernel's time."""
DEVICE_ELEMENTS = 2**26
"""Largest case on a device: half a gigabyte of float64 truth an output."""
NAMED_ELEMENTS = 2**28
"""Of sizes that `--at` names: a gigabyte of float32, which goes through files some ten times."""
INTERPRETER_SPAN_BYTES = 2**35
"""Largest storage that a tensor with huge strides may span on the CPU: only what is touched takes memory."""
BYTES_AN_ELEMENT = 128
"""Device memory that an element of a case may need for the truth: in float64, with intermediate results."""
CANDIDATE_BYTES_AN_ELEMENT = 32
"""And in each process that runs a candidate."""
OWN_BYTES_AN_ELEMENT = 64
"""Of the call of get_inputs(), in all processes: where that is huge, nothing is computed in float64."""
CANDIDATES_AT_ONCE = 2
"""A conversion validates two stages side by side on a device."""
SPAN_SHARE = 0.3
"""Share of a device's free memory that one tensor with huge strides may span: two are held at a time."""


async def validate(
    worker: WorkerClient,
    request: ValidationRequest,
    runtime: Runtime,
    listener: ProgressListener | None = None,
) -> Verdict:
    """Run the candidate on every planned case, compare it with the reference, and see how it does it.

    The truth is the reference in float64; the candidate may err twice as much as PyTorch itself does at the
    case's dtype, and a little more. What the candidate does is in the verdict, be it a crash; a target or a
    declaration that cannot be used is refused: BadInput. Raises MissingRequirement where `runtime` needs a
    device that is not there.
    """
    async with open_validation(worker, request, runtime) as validation:
        return await validation.verdict(request, "candidate", listener)


@asynccontextmanager
async def open_validation(
    worker: WorkerClient, request: ValidationRequest, runtime: Runtime, problem: Problem | None = None
) -> "AsyncIterator[Validation]":
    """Everything about the request but its candidate, for as long as the block lasts.

    Any number of candidates are judged by it, also at once: inputs are generated and the truth is computed
    once for all. A `problem` that is resolved already is not described again. Raises as `validate`.
    """
    # Which is needed too, and takes seconds to start.
    worker.warm(compiled(runtime) if runtime.interpreter else under_interpreter(runtime))
    if not runtime.interpreter and not (await versions(worker, runtime)).devices:
        raise MissingRequirement(
            "This machine has no GPU that torch can use.", "Validate under the interpreter."
        )
    target = reference_of(request.candidate, request.reference)
    seed = secrets.randbits(48) if request.seed is None else request.seed
    with exchange_folder() as folder:
        setting = ValidationSetting(worker, runtime, request.seconds, folder, seed, request.backward)
        reference = ReferenceProcess.of(setting, target, request.candidate)
        try:
            if problem is None:
                description = await description_of(reference, "reference")
            else:
                description, _ = problem.reference, await reference.start()
            yield Validation(
                setting, reference, description, limits_of(request, reference.free_bytes), problem
            )
        except LostAnswer as lost:
            raise TargetBroken(f"The reference {lost.outcome.why}.", "Run it by itself first.") from lost
        finally:
            await reference.worker.close()


@dataclass(frozen=True)
class Validation:
    """A reference, and what candidates are compared with it on."""

    setting: ValidationSetting
    reference: ReferenceProcess
    description: Description
    limits: CaseSizeLimits
    shared_problem: Problem | None = None
    """Resolved already, where another candidate's inputs are this one's too."""

    async def verdict(
        self, request: ValidationRequest, name: str, listener: ProgressListener | None = None
    ) -> Verdict:
        """The verdict on a candidate; `name` tells it from the others of this validation."""
        await self.reference.stage(request.candidate, name)
        secret = (places.runs(), *(t.path.resolve() for t in (self.reference.target, request.candidate)))
        workers = CandidateWorkers(self.setting, request.candidate, name, secret)
        policy = Policy(request.allow_torch)
        trial = ValidationTrial(
            self.setting, policy, self.reference, workers, request.stop, all_twice=bool(request.cases)
        )
        try:
            plan = await self.plan(request, await description_of(workers, "candidate"))
            found = await findings(trial, request, plan, listener)
            triton = (await versions(self.setting.worker, self.setting.runtime)).triton
            return verdict_of(found, trial, request, plan.source, triton)
        finally:
            await workers.close()

    async def plan(self, request: ValidationRequest, candidate: Description) -> ReadyPlan:
        """What the candidate is tried on. Raises BadInput where that cannot be."""
        if self.shared_problem is None:
            problem = problem_of(self.description, candidate, request.options)
            await refuse_too_large(self.setting.worker, problem.declaration, self.setting.runtime)
        else:
            problem = self.shared_problem.with_candidate(candidate)
        self.reference.unordered = problem.declaration.unordered
        plan = ready_plan(request, problem, self.limits, seed=self.setting.seed)
        if not request.cases:
            plan = await without_too_large(self.reference, plan)
        refuse_empty(plan.cases)
        return plan


async def description_of(side: ReferenceProcess | CandidateWorkers, role: Role) -> Description:
    """What a side's process says of its target once it has loaded it.

    Where that process cannot say it, for it runs no get_inputs(), has but a part of the file, or was stopped
    while it imported that, another one describes the file as it is. Raises as `describe`, and LostAnswer.
    """
    with suppress(TargetNotFound):
        if (description := await side.start()) is not None:
            return description
    setting = side.setting
    return await describe(setting.worker, side.target, role, setting.runtime, seconds=setting.seconds)


async def findings(
    trial: ValidationTrial, request: ValidationRequest, plan: ReadyPlan, listener: ProgressListener | None
) -> "Findings":
    """What the candidate does on a plan of cases."""
    builder, declaration, memory = plan.builder, plan.builder.declaration, MemoryCheck()
    interpreter = trial.setting.runtime.interpreter
    judged: list[JudgedCase] = []
    refused: list[Violation] = []
    async with task_group() as group:
        if interpreter:
            # What the interpreter does not show, then what a device does not.
            group.start_soon(check_compiler, trial, plan.cases.cases, refused)
        else:
            tools = TOOLS if request.thorough else ()
            group.start_soon(check_memory, trial, plan.cases.cases, tools, memory)
        judged += await trial.run(plan.cases.cases, listener)
    trial, left_out = replace(trial, stop="never"), len(plan.cases.cases) - len(judged)
    cases, judged, milder = await retry_milder(trial, builder, plan.cases.cases, judged)
    judged = await trial.finish(judged, cases[-1] if cases else None)
    measured = [memory.merged(case.result) for case in judged]
    refuse_unrunnable_reference(measured, trial.reference.target, request.cases)
    limited = with_limits(
        with_blame(measured, milder), cases, request.refused_limits, every_access=interpreter
    )
    results = await with_trials_blamed(trial, cases, limited)
    skipped = plan.cases.skipped
    reduction = None
    if not request.cases:
        results = without_timeouts(results, cases, declaration)
        results = without_refused_combinations(results, cases)
        skipped = (*skipped, *not_judged(results))
        if left_out:
            why = "not run, as an earlier case is wrong"
            skipped = (*skipped, Skip(what=times(left_out, "further case"), why=why))
        if left_out and not wrong_of(results):
            return await findings(trial, request, plan, listener)
        if request.stop != "at once":
            reduction = await reduce_failure(trial, builder, cases, results)
    if reduction and all(reduction.case.name != result.name for result in results):
        results = [*results, reduction.judged.result]
    culprit = await culprit_behind(trial, cases, results, reduction, plan.source)
    observations = tuple(case.observation for case in judged)
    unblamed = tuple(case.observation for case in judged if not case.result.mismatches)
    return Findings(
        skipped, tuple(results), observations, unblamed, memory, tuple(refused), reduction, culprit
    )


async def culprit_behind(
    trial: ValidationTrial,
    cases: Sequence[Case],
    results: Sequence[CaseResult],
    reduction: Reduction | None,
    source: str,
) -> Culprit:
    """What is at fault in the case to look at first, on a device; under the interpreter what a compiler would
    get wrong. It says nothing where there is no such case."""
    if trial.setting.runtime.interpreter:
        return await compiled_wrongly(trial, source)
    if reduction is not None:
        return await find_culprit(trial, reduction.case, reduction.judged.result, source)
    if not (wrong := wrong_of(results)):
        return NO_CULPRIT
    telling = most_telling(wrong)
    return await find_culprit(trial, next(c for c in cases if c.name == telling.name), telling, source)


def limits_of(request: ValidationRequest, free_bytes: int | None) -> CaseSizeLimits:
    """What fits: a device's free memory bounds what is tried on it; None: there is no device."""
    if free_bytes is None:
        elements = request.limit_elements or INTERPRETER_ELEMENTS
        return CaseSizeLimits(elements, INTERPRETER_SPAN_BYTES, elements)
    processes = CANDIDATES_AT_ONCE * device_workers()
    bytes_an_element = BYTES_AN_ELEMENT + processes * CANDIDATE_BYTES_AN_ELEMENT
    elements = min(request.limit_elements or DEVICE_ELEMENTS, free_bytes // bytes_an_element)
    own_elements = max(request.limit_elements or free_bytes // OWN_BYTES_AN_ELEMENT, elements)
    named_elements = max(request.limit_elements or min(NAMED_ELEMENTS, own_elements), elements)
    return CaseSizeLimits(elements, int(free_bytes * SPAN_SHARE), own_elements, named_elements)


@dataclass(frozen=True)
class Findings:
    """What a verdict is made of, beside the trial and its plan."""

    skipped: tuple[Skip, ...]
    """What was not tried."""
    results: tuple[CaseResult, ...]
    observations: tuple[Observation, ...]
    unblamed: tuple[Observation, ...]
    """Those of cases in which no value is wrong."""
    memory: MemoryCheck
    refused: tuple[Violation, ...]
    """Kernels that the compiler does not take, under the interpreter."""
    reduction: Reduction | None
    culprit: Culprit
    """What is at fault, as far as other ways of running a wrong case show it."""


def idle_results(findings: Findings, policy: Policy) -> Iterator[Violation]:
    """Results to which no case of a whole plan has a kernel write; a few cases may have nothing to store."""
    seen = findings.memory.observations
    yield from never_stored(findings.unblamed, findings.observations, policy)
    yield from never_stored(seen, seen, policy)


def verdict_of(
    findings: Findings, trial: ValidationTrial, request: ValidationRequest, source: str, triton: str
) -> Verdict:
    """The verdict; `source` is that of the candidate's file, `triton` the version that ran it."""
    setting, results, reduction = trial.setting, findings.results, findings.reduction
    interpreter = setting.runtime.interpreter
    violations = (
        *findings.memory.violations,
        *findings.refused,
        *(() if request.cases else idle_results(findings, trial.policy)),
        *violations_of_traces(trial.candidate.traces),
    )
    compared = (f"Compared as declared: {each}." for each in trial.reference.unordered)
    decision = decide(results, violations, request.cases)
    wrong = wrong_of(results)
    smallest = reduction.case.name if reduction else None
    telling = smallest or (most_telling(wrong).name if wrong else None)
    where = "interpreted on CPU tensors" if interpreter else "compiled and run on the device"
    behavior = behavior_of(findings.observations)
    never_launched: tuple[str, ...] = ()
    unreached: tuple[Skip, ...] = ()
    single_turns: tuple[Skip, ...] = ()
    if not request.cases:  # all of the plan
        never_launched = tuple(sorted(kernels_in(source).difference(behavior.kernels)))
        file = str(request.candidate.path.resolve())
        unreached = unreached_lines(source, findings.observations, file)
        single_turns = loops_of_one_turn(findings.observations, file)
    takes = reduction.sentence if reduction else ""
    further = unseen(never_launched, unreached)
    return Verdict(
        summary=summary_of(decision, results, violations, findings.skipped, further, takes),
        next_step=findings.culprit.step or next_step_of(decision, results, violations, never_launched),
        verdict=decision,
        candidate=str(request.candidate),
        reference=str(trial.reference.target),
        cases=results,
        skipped=(*findings.skipped, *unreached, *single_turns),
        violations=violations,
        notes=(
            *filter(None, (findings.culprit.sentence,)),
            *compared,
            *notes_of(findings.observations, trial.policy),
            *notes_on(results, findings.observations),
            *findings.memory.notes_on(results),
        ),
        limits=limits_in(results),
        behavior=behavior,
        never_launched=never_launched,
        smallest=smallest,
        replay=command(request, setting.runtime, setting.seed, telling),
        seed=setting.seed,
        device="CPU, Triton's interpreter" if interpreter else trial.reference.device,
        provenance=f"measured: every output compared with float64, {where} by Triton {triton}",
    )
