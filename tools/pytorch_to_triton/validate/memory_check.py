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
from pytorch_to_triton.schema.job import Job
from pytorch_to_triton.schema.verdict import CaseResult, Violation
from pytorch_to_triton.validate.judge import MEMORY, OK
from pytorch_to_triton.validate.sanitize import chosen, violations
from pytorch_to_triton.validate.trial import Setting, Side, Trial

TOOLS: tuple[Tool, ...] = ("memcheck", "racecheck")


@dataclass
class MemoryCheck:
    """What came of it."""

    by_case: dict[str, tuple[Violation, ...]] = field(default_factory=dict)
    """What the guarded interpreter saw, by the case's name."""
    violations: tuple[Violation, ...] = ()
    """What the sanitizer saw."""
    notes: tuple[str, ...] = ()
    """What was checked, and what could not be."""

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


async def check_memory(trial: Trial, cases: Sequence[Case]) -> MemoryCheck:
    """Look at the small ones among the cases again; the trial is one on a device."""
    found = MemoryCheck()
    small = chosen(cases)
    reports: dict[Tool, Sanitized] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(look_under_the_interpreter, trial, small, found)
        if find_sanitizer() is not None:
            group.start_soon(look_under_the_sanitizer, trial, small, reports)
    found.violations = tuple(v for report in reports.values() for v in violations(report.hazards))
    found.notes = (*found.notes, *notes_on(reports, len(small)))
    return found


async def look_under_the_interpreter(trial: Trial, cases: Sequence[Case], found: MemoryCheck) -> None:
    """Guarded runs on CPU tensors; of their results only what they say about memory counts."""
    setting = trial.setting
    mode = setting.mode.model_copy(update={"interpreter": True, "devices": None})
    quiet = dataclasses.replace(setting, mode=mode, watch=None)
    guarded = Trial.of(quiet, trial.policy, trial.reference.target, trial.candidate.target)
    results = await guarded.run(cases)
    for result in results:
        found.by_case[result.name] = tuple(v for v in result.violations if v.breach in MEMORY)
    unable = [result for result in results if result.status in ("raised", "crashed", "timed_out")]
    if unable:
        why = unable[0].why.partition("\n")[0]
        found.notes += (f"Bounds and races unchecked in {unable[0].name}: under the interpreter it {why}.",)


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


def notes_on(reports: Mapping[Tool, Sanitized], cases: int) -> tuple[str, ...]:
    """What the sanitizer looked at, and where it could not."""
    if not reports:
        return ("compute-sanitizer is not installed: bounds were checked under the interpreter alone.",)
    done = [tool for tool, report in reports.items() if report.status != "failed"]
    failed = [f"{tool} could not be run: {r.detail}." for tool, r in reports.items() if r.status == "failed"]
    looked = [f"compute-sanitizer's {' and '.join(done)} watched {cases} small cases."] if done else []
    return (*looked, *failed)
