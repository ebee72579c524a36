"""What a device does not show of memory: accesses out of bounds and races, looked for by other means.

A kernel that reads past the end of a tensor returns the right values on a GPU. So a few small cases are run
again: under Triton's interpreter, where every access is checked and named with its line, and, where it is
installed, under NVIDIA's compute-sanitizer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import anyio

from pytorch_to_triton.inputs.case import Case, Layout, tensors_in
from pytorch_to_triton.profilers.sanitizer import Hazard, Sanitized, Tool, find_sanitizer, sanitize
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.verdict import CaseResult, Violation, ViolationKind
from pytorch_to_triton.validate.behavior import OVERFLOW, violation, violations_of
from pytorch_to_triton.validate.judge import MEMORY, in_order_of_weight
from pytorch_to_triton.validate.phrases import times
from pytorch_to_triton.validate.run_outcome import OK
from pytorch_to_triton.validate.target_worker import LostAnswer, TargetWorker
from pytorch_to_triton.validate.trial import ValidationTrial, observation_of, request_for
from pytorch_to_triton.worker.wire.observation import Observation

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
TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck")
SEEN_HERE: tuple[ViolationKind, ...] = (*MEMORY, "output_without_kernel")
"""On a device it is not known what a kernel stored, only what it was given."""
OTHER_VALUES = 4
"""Cases of other declared values of constants, each of which may take a kernel of its own."""
LARGE_STRIDE_CASES = 2
"""Where an offset overflows, a device says no more than that an access was illegal."""


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
        [case for case in small if case.group == "value"][:OTHER_VALUES],
    ]
    names = {case.name for sort in sorts for case in sort}
    return [case for case in cases if case.name in names]


def violations_of_hazards(hazards: Sequence[Hazard]) -> tuple[Violation, ...]:
    """What the candidate may not do: accesses outside of tensors, misaligned ones, and races.

    A Triton kernel's shared memory is the compiler's: what is reported of it alone is in `remarks`. So are
    races between writes, which the tool reports of every reduction whose lanes round differently
    (github.com/triton-lang/triton/issues/7264).
    """
    return tuple(filter(None, map(violation_of_hazard, hazards)))


def remarks(hazards: Sequence[Hazard]) -> Iterator[str]:
    """The hazards that are no violations, in a sentence each."""
    for hazard in (hazard for hazard in hazards if violation_of_hazard(hazard) is None):
        space = f" in {hazard.space} memory" if hazard.space else ""
        detail = f", {hazard.detail}" if hazard.detail else ""
        yield (
            f"compute-sanitizer reports for {kernel_of(hazard)}: {hazard.kind}{space}{detail} "
            f"({times(hazard.count, 'time')}). "
            "It reports the same of right kernels, whose shared memory the compiler manages."
        )


def violation_of_hazard(hazard: Hazard) -> Violation | None:
    place = {"file": hazard.file, "line": hazard.line}
    if hazard.kind == "race":
        count = times(hazard.count, "hazard")
        message = f"{kernel_of(hazard)} races on shared memory: {hazard.detail} ({count})."
        return violation("race", message, BARRIER, **place)
    if hazard.kind not in ACCESSES or hazard.space != "global":
        return None
    kind, does = ACCESSES[hazard.kind]
    where = "at a misaligned address" if hazard.misaligned else "outside of every tensor"
    detail = BOUNDS.sub("", hazard.detail)
    at = f", {detail}" if detail else ""
    size = times(hazard.size_bytes or 1, "byte")
    message = f"{kernel_of(hazard)} {does} {size} {where}{at} ({times(hazard.count, 'thread')})."
    overflow = not hazard.misaligned and (hazard.outside_bytes or 0) > FAR_BYTES
    suggestion = MISALIGNED if hazard.misaligned else OVERFLOW if overflow else OUTSIDE
    return violation(kind, message, suggestion, **place, overflow=overflow)


def kernel_of(hazard: Hazard) -> str:
    """The kernel, and file and line where they are known."""
    at = f" ({hazard.file}:{hazard.line})" if hazard.file else ""
    return f"{hazard.kernel or 'A kernel'}{at}"


@dataclass
class MemoryCheck:
    """What the other means have found."""

    by_case: dict[str, tuple[Violation, ...]] = field(default_factory=dict)
    """What the guarded interpreter saw, by the case's name."""
    violations: tuple[Violation, ...] = ()
    """What the sanitizer saw; and that no kernel stores anything under the interpreter."""
    observations: list[Observation] = field(default_factory=list)
    """All that the guarded interpreter saw."""
    unable: dict[str, str] = field(default_factory=dict)
    """Why the guarded interpreter could not run a case, by its name."""
    notes: tuple[str, ...] = ()
    """What the sanitizer looked at, and where it could not."""

    def merged(self, result: CaseResult) -> CaseResult:
        """The device's result with what was seen elsewhere; a case that passed has failed with it."""
        violations = self.by_case.get(result.name, ())
        if not violations:
            return result
        return result.model_copy(
            update={
                "violations": (*violations, *result.violations),
                "why": in_order_of_weight(violations, [result.why]),
                "status": "failed" if result.status in ("passed", "skipped", "undecided") else result.status,
            }
        )

    def notes_on(self, results: Sequence[CaseResult]) -> tuple[str, ...]:
        """What was checked, and what could not be, of cases that are right on the device."""
        right = {result.name for result in results if result.status == "passed"}
        unchecked = [
            f"Bounds and races were not checked in {name}: under the interpreter it {why}"
            for name, why in self.unable.items()
            if name in right
        ]
        return (*self.notes, *unchecked[:1])


async def check_memory(
    trial: ValidationTrial, cases: Sequence[Case], tools: Sequence[Tool], memory: MemoryCheck
) -> None:
    """Look at the small ones among the cases again; the trial is one on a device."""
    small = sample_cases(cases)
    reports: dict[Tool, Sanitized] = {}
    strided = [case for case in cases if case.group == "large_stride" and case.elements <= ELEMENTS]
    async with anyio.create_task_group() as group:
        group.start_soon(look_under_the_interpreter, trial, [*small, *strided[:LARGE_STRIDE_CASES]], memory)
        if tools and find_sanitizer() is not None:
            group.start_soon(look_under_the_sanitizer, trial, small, tools, reports)
    hazards = [violations_of_hazards(report.hazards) for report in reports.values()]
    memory.violations = tuple(chain(*hazards))
    memory.notes = notes_of(reports, len(small), tools)


def under_interpreter(runtime: Runtime) -> Runtime:
    """The same Python, with kernels under the interpreter."""
    return runtime.model_copy(update={"interpreter": True, "devices": None})


async def look_under_the_interpreter(
    trial: ValidationTrial, cases: Sequence[Case], memory: MemoryCheck
) -> None:
    """Guarded runs on CPU tensors, of which only what they say about memory counts."""
    name = f"{trial.candidate.name}-guarded"
    await trial.reference.stage(trial.candidate.target, name)
    setting = replace(trial.setting, runtime=under_interpreter(trial.setting.runtime))
    guarded = replace(trial.candidate, setting=setting, name=name)
    (worker,) = guarded.workers
    try:
        for case in cases:
            await look_at(trial, worker, case, memory)
        await worker.finish()
    finally:
        await guarded.close()


async def look_at(trial: ValidationTrial, worker: TargetWorker, case: Case, memory: MemoryCheck) -> None:
    """One guarded call."""
    prepared = await trial.reference.prepare(case)
    try:
        if prepared.outcome is not OK:
            return
        item = await worker.answer(request_for(case, prepared))
        outcome = worker.outcome_of(item)
        observation = observation_of(item, prepared)
        memory.observations.append(observation)
        violations = violations_of(case, observation, trial.policy)
        memory.by_case[case.name] = tuple(v for v in violations if v.kind in SEEN_HERE)
    except LostAnswer as lost:
        outcome = lost.outcome
    finally:
        await trial.reference.done_with(case)
    if outcome is not OK:
        memory.unable[case.name] = outcome.why.partition("\n")[0]


async def look_under_the_sanitizer(
    trial: ValidationTrial, cases: Sequence[Case], tools: Sequence[Tool], reports: dict[Tool, Sanitized]
) -> None:
    """The candidate alone, each tensor in an allocation of its own, under each of the tools."""
    setting, reference = trial.setting, trial.reference
    prepared = [(case, await reference.prepare(case)) for case in cases]
    requests = [request_for(case, ready) for case, ready in prepared if ready.outcome is OK]
    seconds = setting.seconds * (len(requests) + 1)

    async def check(tool: Tool) -> None:
        # A side of its own: what the candidate itself returned is being compared meanwhile.
        name = f"{trial.candidate.name}-{tool}"
        await reference.stage(trial.candidate.target, name)
        job = replace(trial.candidate, name=name).job(red_zone_bytes=0)
        reports[tool] = await sanitize(
            setting.worker.folders, job, requests, setting.runtime, tool, seconds=seconds
        )

    async with anyio.create_task_group() as group:
        for tool in tools if requests else ():
            group.start_soon(check, tool)
    for case, _ in prepared:
        await reference.done_with(case)


def notes_of(reports: Mapping[Tool, Sanitized], cases: int, tools: Sequence[Tool]) -> tuple[str, ...]:
    """What the sanitizer looked at, and where it could not or was not asked to."""
    if not tools:
        return ("Bounds and races were checked under the interpreter; --thorough adds compute-sanitizer.",)
    if not reports:
        return ("compute-sanitizer is not installed: bounds were checked under the interpreter only.",)
    remarked = [remark for report in reports.values() for remark in remarks(report.hazards)]
    done = [tool for tool, report in reports.items() if report.status != "failed"]
    failed = [f"{tool} could not be run: {r.detail}." for tool, r in reports.items() if r.status == "failed"]
    checked = [f"compute-sanitizer's {' and '.join(done)} checked {cases} small cases."] if done else []
    return (*checked, *failed, *remarked)
