"""Running both sides of a validation: oracle, candidate and comparison, in processes of their own."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from pydantic import JsonValue

from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.schema.case import Case
from pytorch_to_triton.schema.job import Failure, Job, Mode, Outcome
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.judge import (
    OK,
    Attempt,
    budget,
    candidate_failed,
    judge_case,
    reference_failed,
)
from pytorch_to_triton.validate.statistics import CaseStatistics
from pytorch_to_triton.validate.target import HINTS, refusal_of, refusal_of_failure

LOSSES = 3
"""So many crashes and time-outs of one side are waited for; its further cases are not run."""

Item = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What all jobs of a validation share."""

    door: Door
    mode: Mode
    seconds: float
    """How long one call of one side may take."""
    folder: Path
    """The exchange folder."""
    seed: int
    watch: Watch | None

    @property
    def device(self) -> str:
        """The torch device on which tensors lie."""
        return "cpu" if self.mode.interpreter else "cuda"


@dataclass
class Side:
    """The reference or the candidate, run through cases; a fresh process follows a crash or a time-out."""

    kind: str
    """Its job: `oracle` or `subject`."""
    target: Target
    setting: Setting
    losses: int = 0
    device: str = ""
    """The device's name, once a job has told it."""
    items: dict[str, Item] = field(default_factory=dict)

    async def run(self, cases: Sequence[Item]) -> dict[str, Attempt]:
        """What came of each case, by name. Raises TargetBroken where the target cannot be used at all."""
        attempts: dict[str, Attempt] = {}
        remaining = list(cases)
        while remaining and self.losses < LOSSES:
            items, end = await self._run_once(remaining)
            attempts.update({item["case"]: self._attempt(item) for item in items if "case" in item})
            before, remaining = remaining, [case for case in remaining if case["name"] not in attempts]
            if end.status is None and len(remaining) < len(before):
                continue
            if remaining:
                self.losses += 1
                attempts[remaining.pop(0)["name"]] = end
        not_run = Attempt("skipped", f"not run after {self.losses} crashes or time-outs")
        return {**{case["name"]: not_run for case in remaining}, **attempts}

    async def _run_once(self, cases: list[Item]) -> tuple[list[Item], Attempt]:
        """One process: the items that it handed over, and how it ended."""
        outcome, items = await self._ask(cases)
        if outcome is None:
            return items, Attempt("timed_out", f"did not return within {self.setting.seconds:g} s")
        if outcome.failure and outcome.failure.type in HINTS:
            raise refusal_of_failure(outcome.failure)
        if outcome.answer is None and not outcome.items:
            raise refusal_of(outcome, self.target)
        if outcome.answer is None:
            slow = outcome.status == "timed_out"
            why = outcome.detail if slow else f"ended its process: {outcome.detail}"
            return items, Attempt("timed_out" if slow else "crashed", why)
        self.device = outcome.answer.get("device", self.device)
        return items, OK if items[1:] else Attempt("crashed", "returned without a result")

    async def _ask(self, cases: list[Item]) -> tuple[Outcome | None, list[Item]]:
        """The job's outcome, None where one case took too long; and its items."""
        setting = self.setting
        arguments: dict[str, JsonValue] = {
            "target": self.target.model_dump(mode="json"),
            "cases": list(cases),
            "seed": setting.seed,
            "folder": str(setting.folder),
            "device": setting.device,
        }
        with anyio.CancelScope() as scope:
            pulse = Pulse(scope, setting.seconds, setting.watch)
            job = Job(kind=self.kind, arguments=arguments)
            seconds = setting.seconds * (len(cases) + 1)
            outcome = await setting.door.ask(job, setting.mode, seconds=seconds, watch=pulse)
            return outcome, list(outcome.items)
        return None, pulse.items

    def _attempt(self, item: Item) -> Attempt:
        self.items[item["case"]] = item
        if item["status"] == "ok":
            return OK
        return Attempt("raised", told(Failure.model_validate(item["failure"])))


class Pulse:
    """Passes progress on, and ends the wait when the next item is longer in coming than `seconds`."""

    def __init__(self, scope: anyio.CancelScope, seconds: float, watch: Watch | None) -> None:
        self.items: list[Item] = []
        self._scope, self._seconds, self._watch = scope, seconds, watch

    async def progress(self, done: float, total: float | None, message: str) -> None:
        """Progress is for the user."""
        if self._watch:
            await self._watch.progress(done, total, message)

    async def item(self, result: Item) -> None:
        """An item is a sign of life."""
        self.items.append(result)
        self._scope.deadline = anyio.current_time() + self._seconds


def told(failure: Failure) -> str:
    """An exception in a sentence, with the user's line."""
    place = f" at {Path(failure.file).name}:{failure.line}" if failure.file else ""
    return f"raised {failure.type}{place}: {failure.message}"


@dataclass
class Trial:
    """A validation under way."""

    setting: Setting
    reference: Side
    candidate: Side

    async def run(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Run both sides on the cases and judge each, in their order."""
        jobs = [{**case.model_dump(mode="json"), "id": secrets.token_hex(4)} for case in cases]
        solved = await self.reference.run(jobs)
        open_jobs = [self._for_candidate(job) for job in jobs if solved[job["name"]] is OK]
        tried = await self.candidate.run(open_jobs) if open_jobs else {}
        returned = [job for job in open_jobs if tried[job["name"]] is OK]
        statistics = await self._compare(returned) if returned else {}
        return [self._result(case, solved, tried, statistics) for case in cases]

    def _for_candidate(self, job: Item) -> Item:
        return {"id": job["id"], "name": job["name"], "written": self.reference.items[job["name"]]["written"]}

    async def _compare(self, jobs: list[Item]) -> dict[str, CaseStatistics]:
        setting = self.setting
        arguments: dict[str, JsonValue] = {
            "cases": [{"id": job["id"], "name": job["name"]} for job in jobs],
            "folder": str(setting.folder),
            "device": setting.device,
            "budget": budget(),
        }
        job = Job(kind="compare", arguments=arguments)
        seconds = setting.seconds * (len(jobs) + 1)
        outcome = await setting.door.ask(job, setting.mode, seconds=seconds, watch=setting.watch)
        if outcome.answer is None:
            raise RuntimeError(f"the comparison {outcome.status}: {outcome.detail} ({outcome.folder})")
        found = (CaseStatistics.model_validate(item) for item in outcome.items)
        return {statistics.case: statistics for statistics in found}

    def _result(
        self,
        case: Case,
        solved: dict[str, Attempt],
        tried: dict[str, Attempt],
        statistics: dict[str, CaseStatistics],
    ) -> CaseResult:
        if solved[case.name] is not OK:
            return reference_failed(case, solved[case.name].why)
        if tried[case.name] is not OK:
            return candidate_failed(case, tried[case.name])
        return judge_case(case, statistics[case.name], self.reference.items[case.name]["truth"])
