"""Running both sides of a validation: inputs, candidate and comparison, in processes of their own."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from pydantic import JsonValue

from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.gpu.target import HINTS, refusal_of, refusal_of_failure
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.schema.case import Case, tensors_in
from pytorch_to_triton.schema.error_budget import budget
from pytorch_to_triton.schema.job import Failure, Job, Mode, Outcome
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import CaseResult
from pytorch_to_triton.validate.conduct import Policy, cut
from pytorch_to_triton.validate.judge import (
    OK,
    Attempt,
    candidate_failed,
    judge_case,
    reference_failed,
)
from pytorch_to_triton.validate.observation import Observation, Traces, Trespass
from pytorch_to_triton.validate.statistics import CaseStatistics

LOSSES = 3
"""So many crashes and time-outs of one side are waited for; its further cases are not run."""
LONGEST = 400
"""Characters of an exception's text: some hold a whole array."""
SEED_BYTES = 6
"""Seeds stay below 2**48: JSON numbers are exact that far."""

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
    backward: bool
    """Whether gradients are compared too."""
    secret: tuple[Path, ...]
    """Files and folders that the candidate must not open."""
    watch: Watch | None

    @property
    def device(self) -> str:
        """The torch device on which tensors lie."""
        return "cpu" if self.mode.interpreter else "cuda"

    @property
    def shared(self) -> dict[str, JsonValue]:
        """As the jobs take it."""
        return {"folder": str(self.folder), "device": self.device, "backward": self.backward}

    def seed_of(self, name: str) -> int:
        """The seed of one case: it tells nothing about those of others."""
        digest = hashlib.sha256(f"{self.seed}\0{name}".encode()).digest()
        return int.from_bytes(digest[:SEED_BYTES], "big")


@dataclass
class Side:
    """One job that goes through cases; a fresh process follows a crash or a time-out."""

    kind: str
    """`prepare`, `subject` or `compare`."""
    target: Target
    setting: Setting
    arguments: dict[str, JsonValue]
    """What the job takes beside the target, the cases, and what all jobs are given."""
    losses: int = 0
    unloadable: Attempt | None = None
    """Set where the candidate's file did what it may not do while it was imported."""
    device: str = ""
    """The device's name, once a job has told it."""
    items: dict[str, Item] = field(default_factory=dict)
    traces: list[Traces] = field(default_factory=list)

    async def run(self, cases: Sequence[Item]) -> dict[str, Attempt]:
        """What came of each case, by name. Raises TargetBroken where the target cannot be used at all."""
        attempts: dict[str, Attempt] = {}
        remaining = list(cases)
        while remaining and self.losses < LOSSES:
            items, end = await self._run_once(remaining)
            if self.unloadable is not None:
                return {case["name"]: self.unloadable for case in cases}
            attempts.update({item["case"]: self._attempt(item) for item in items if "case" in item})
            before, remaining = remaining, [case for case in remaining if case["name"] not in attempts]
            if end.status is None and len(remaining) < len(before):
                continue
            # A process that ends itself after its last case has told nothing that can be relied on.
            self.losses += 1
            lost = remaining.pop(0) if remaining else before[-1]
            attempts[lost["name"]] = end
        not_run = Attempt("skipped", f"not run after {self.losses} crashes or time-outs")
        return {**{case["name"]: not_run for case in remaining}, **attempts}

    async def _run_once(self, cases: list[Item]) -> tuple[list[Item], Attempt]:
        """One process: the items that it handed over, and how it ended."""
        outcome, items = await self._ask(cases)
        self._note(items)
        if outcome is None:
            return items, Attempt("timed_out", f"did not return within {self.setting.seconds:g} s")
        if outcome.failure and outcome.failure.type in HINTS:
            if not any(found.trespasses for found in self.traces):
                raise refusal_of_failure(outcome.failure)
            self.unloadable = Attempt("raised", outcome.failure.message)
            return items, self.unloadable
        if outcome.answer is None and not outcome.items:
            raise refusal_of(outcome, self.target)
        if outcome.answer is None:
            slow = outcome.status == "timed_out"
            why = outcome.detail if slow else f"ended its process: {outcome.detail}"
            return items, Attempt("timed_out" if slow else "crashed", why)
        self.device = outcome.answer.get("device", self.device)
        self._note([outcome.answer])
        return items, OK if items[1:] else Attempt("crashed", "returned without a result")

    async def _ask(self, cases: list[Item]) -> tuple[Outcome | None, list[Item]]:
        """The job's outcome, None where one case took too long; and its items."""
        setting = self.setting
        arguments: dict[str, JsonValue] = {
            "target": self.target.model_dump(mode="json"),
            "cases": list(cases),
            "setting": setting.shared,
            **self.arguments,
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
        failure = Failure.model_validate(item["failure"])
        return Attempt("raised", told(failure), failure)

    def _note(self, items: Sequence[Item]) -> None:
        """Keep what a process left behind, also where it ended itself right after."""
        self.traces += [Traces.model_validate(item["traces"]) for item in items if "traces" in item]
        trespasses = [Trespass.model_validate(item["trespass"]) for item in items if "trespass" in item]
        self.traces += [Traces(trespasses=tuple(trespasses))] * bool(trespasses)


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
    # CUDA's errors go on for paragraphs about environment variables.
    message = failure.message.partition("\n")[0] if "CUDA" in failure.message else failure.message
    return f"raised {failure.type}{place}: {cut(message, LONGEST)}"


@dataclass
class Trial:
    """A validation under way."""

    setting: Setting
    policy: Policy
    reference: Side
    candidate: Side
    comparison: Side
    observations: list[Observation] = field(default_factory=list)
    staged: anyio.Event = field(default_factory=anyio.Event)
    """Set once the files of both sides lie in the exchange folder."""

    @staticmethod
    def of(setting: Setting, policy: Policy, reference: Target, candidate: Target) -> "Trial":
        """The three jobs of a validation."""
        other: dict[str, JsonValue] = {
            "candidate": candidate.model_dump(mode="json"),
            "state_seed": setting.seed_of("state"),
        }
        secret: list[JsonValue] = [str(path) for path in setting.secret]
        return Trial(
            setting,
            policy,
            Side("prepare", reference, setting, other),
            Side("subject", candidate, setting, {"secret": secret, "red_zone_bytes": None}),
            Side("compare", reference, setting, {"budget": budget()}),
        )

    async def run(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Run both sides on the cases and judge each, in their order."""
        jobs = {case.name: self.job(case) for case in cases}
        prepared = await self.reference.run(list(jobs.values()))
        self.staged.set()
        feasible = [case for case in cases if prepared[case.name] is OK]
        tried = await self.candidate.run([self._for_candidate(case, jobs) for case in feasible])
        returned = [case for case in feasible if tried[case.name] is OK]
        compared = await self.comparison.run([self._for_comparison(case, jobs) for case in returned])
        return [self._result(case, prepared, tried, compared) for case in cases]

    def job(self, case: Case) -> Item:
        """The case as `prepare` takes it: with an id and a seed of its own."""
        seed = self.setting.seed_of(case.name)
        return {**case.model_dump(mode="json"), "id": secrets.token_hex(4), "seed": seed}

    def _for_candidate(self, case: Case, jobs: dict[str, Item]) -> Item:
        far = [tensor.name for tensor in tensors_in(case.arguments) if tensor.layout == "far"]
        again = jobs[case.again_after]["id"] if case.again_after in jobs else None
        # A device is quick enough to run everything twice, and only there do programs run at once.
        twice = case.group in ("declared", "reduced") or not self.setting.mode.interpreter
        return {"id": jobs[case.name]["id"], "name": case.name, "far": far, "twice": twice, "again": again}

    def _for_comparison(self, case: Case, jobs: dict[str, Item]) -> Item:
        job = jobs[case.name]
        digest = self.reference.items[case.name]["digest"]
        return {"id": job["id"], "name": case.name, "seed": job["seed"], "digest": digest}

    def _result(
        self,
        case: Case,
        prepared: dict[str, Attempt],
        tried: dict[str, Attempt],
        compared: dict[str, Attempt],
    ) -> CaseResult:
        if prepared[case.name] is not OK:
            return reference_failed(case, prepared[case.name].why)
        item = self.candidate.items.get(case.name, {})
        known = {tuple(pair) for pair in self.reference.items[case.name]["aliases"]}
        seen = Observation.model_validate(item.get("facts") or {}).without_aliases(known)
        self.observations.append(seen)
        if tried[case.name] is not OK:
            return candidate_failed(case, tried[case.name], seen, self.policy)
        if compared[case.name] is not OK:
            return reference_failed(case, compared[case.name].why)
        statistics = CaseStatistics.model_validate(self.comparison.items[case.name]["statistics"])
        return judge_case(case, statistics, seen, self.policy)
