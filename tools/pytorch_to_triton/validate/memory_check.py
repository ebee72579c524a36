"""What a device does not show of memory: accesses out of bounds and races, looked for by other means.

A kernel that reads past the end of a tensor returns the right values on a GPU. So a few small cases are run
again: under Triton's interpreter, where every access is checked and named with its line, and, where it is
installed, under NVIDIA's compute-sanitizer.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic import JsonValue

from pytorch_to_triton.gpu.sanitizer import Sanitized, Tool, find_sanitizer
from pytorch_to_triton.schema.case import Case
from pytorch_to_triton.schema.job import Job, Mode
from pytorch_to_triton.schema.verdict import CaseResult, Violation
from pytorch_to_triton.validate.judge import MEMORY, OK
from pytorch_to_triton.validate.sanitize import ELEMENTS, chosen, remarks, violations
from pytorch_to_triton.validate.trial import Setting, Side, Trial

TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck")
FAR_CASES = 2
"""Where an offset overflows, a device says no more than that an access was illegal."""


@dataclass
class MemoryCheck:
    """What came of it."""

    by_case: dict[str, tuple[Violation, ...]] = field(default_factory=dict)
    """What the guarded interpreter saw, by the case's name."""
    violations: tuple[Violation, ...] = ()
    """What the sanitizer saw."""
    unable: dict[str, str] = field(default_factory=dict)
    """Why the guarded interpreter could not run a case, by its name."""
    notes: tuple[str, ...] = ()
    """What the sanitizer looked at, and where it could not."""

    def merged(self, result: CaseResult) -> CaseResult:
        """The device's result with what was seen elsewhere; a case that passed has failed with it."""
        found = self.by_case.get(result.name, ())
        if not found:
            return result
        said = " ".join(violation.says for violation in found)
        changes: dict[str, Any] = {
            "violations": (*found, *result.violations),
            "why": f"{said} {result.why}".rstrip(),
        }
        if result.status in ("passed", "skipped"):
            changes["status"] = "failed"
        return result.model_copy(update=changes)

    def notes_on(self, results: Sequence[CaseResult]) -> tuple[str, ...]:
        """What was checked, and what could not be, of cases that are right on the device."""
        right = {result.name for result in results if result.status == "passed"}
        open_ones = [(name, why) for name, why in self.unable.items() if name in right]
        told = [
            f"Bounds and races unchecked in {name}: under the interpreter it {why}" for name, why in open_ones
        ]
        return (*self.notes, *told[:1])


async def check_memory(trial: Trial, cases: Sequence[Case], found: MemoryCheck) -> None:
    """Look at the small ones among the cases again; the trial is one on a device."""
    await trial.staged.wait()
    small = chosen(cases)
    reports: dict[Tool, Sanitized] = {}
    async with anyio.create_task_group() as group:
        far = [case for case in cases if case.group == "far" and case.elements <= ELEMENTS][:FAR_CASES]
        group.start_soon(look_under_the_interpreter, trial, [*small, *far], found)
        if find_sanitizer() is not None:
            group.start_soon(look_under_the_sanitizer, trial, small, reports)
    found.violations = tuple(v for report in reports.values() for v in violations(report.hazards))
    found.notes = notes_of(reports, len(small))


def interpreted(mode: Mode) -> Mode:
    """The same Python, with kernels under the interpreter."""
    return mode.model_copy(update={"interpreter": True, "devices": None})


async def look_under_the_interpreter(trial: Trial, cases: Sequence[Case], found: MemoryCheck) -> None:
    """Guarded runs on CPU tensors; of their results only what they say about memory counts."""
    setting = trial.setting
    quiet = dataclasses.replace(setting, mode=interpreted(setting.mode), watch=None)
    guarded = Trial.of(quiet, trial.policy, trial.reference.target, trial.candidate.target)
    for result in await guarded.run(cases):
        found.by_case[result.name] = tuple(v for v in result.violations if v.breach in MEMORY)
        if result.status in ("raised", "crashed", "timed_out"):
            found.unable[result.name] = result.why.partition("\n")[0]


async def look_under_the_sanitizer(
    trial: Trial, cases: Sequence[Case], reports: dict[Tool, Sanitized]
) -> None:
    """The candidate alone, each tensor in an allocation of its own, under each of the tools."""
    setting = trial.setting
    preparation = Side("prepare", trial.reference.target, setting, trial.reference.arguments)
    jobs = [trial.job(case) for case in cases]
    prepared = await preparation.run(jobs)
    items: list[JsonValue] = [
        {"id": job["id"], "name": job["name"], "far": [], "twice": False, "again": None}
        for job in jobs
        if prepared[job["name"]] is OK
    ]
    job = Job(kind="subject", arguments=arguments_of(trial.candidate, setting, items))

    async def watch(tool: Tool) -> None:
        seconds = setting.seconds * (len(items) + 1)
        reports[tool] = await setting.door.sanitized(job, setting.mode, tool, seconds=seconds)

    async with anyio.create_task_group() as group:
        for tool in TOOLS if items else ():
            group.start_soon(watch, tool)


def arguments_of(candidate: Side, setting: Setting, items: list[JsonValue]) -> dict[str, JsonValue]:
    return {
        "target": candidate.target.model_dump(mode="json"),
        "cases": items,
        "setting": setting.shared,
        **candidate.arguments,
        "red_zone_bytes": 0,
    }


def notes_of(reports: Mapping[Tool, Sanitized], cases: int) -> tuple[str, ...]:
    """What the sanitizer looked at, and where it could not."""
    if not reports:
        return ("compute-sanitizer is not installed: bounds were checked under the interpreter alone.",)
    told = [remark for report in reports.values() for remark in remarks(report.hazards)]
    done = [tool for tool, report in reports.items() if report.status != "failed"]
    failed = [f"{tool} could not be run: {r.detail}." for tool, r in reports.items() if r.status == "failed"]
    looked = [f"compute-sanitizer's {' and '.join(done)} watched {cases} small cases."] if done else []
    return (*looked, *failed, *told)
