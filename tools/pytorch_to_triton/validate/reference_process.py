"""The reference of a validation: its inputs and its truth, for any number of candidates."""

import secrets
from collections import Counter
from dataclasses import dataclass, field

import anyio
from pydantic import JsonValue

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.schema.error_budget import budget
from pytorch_to_triton.schema.job import Job
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.lane import Item, Lane, LostAnswer
from pytorch_to_triton.validate.run_outcome import OK, RunOutcome
from pytorch_to_triton.validate.validation_setting import ValidationSetting

KEPT_ELEMENTS = 2**27
"""Inputs stay on disk for further candidates up to this many elements over all cases."""


@dataclass(frozen=True)
class Prepared:
    """A case whose inputs lie in the exchange folder, unless the reference could not do it."""

    outcome: RunOutcome
    request: Item
    """The case as the worker takes it, with its `id` and `seed`."""
    answer: Item

    @property
    def aliases(self) -> set[tuple[str, str]]:
        """The reference's own outputs that share memory with others or with inputs."""
        return {(output, of) for output, of in self.answer["aliases"]}


@dataclass
class ReferenceProcess:
    """One process that prepares cases and compares what candidates returned."""

    setting: ValidationSetting
    target: Target
    lane: Lane
    staged: dict[str, str] = field(default_factory=dict)
    """Digests of the candidates' files, by the names of the candidates."""
    _prepared: dict[str, Prepared] = field(default_factory=dict)
    _users: Counter[str] = field(default_factory=Counter)
    _kept: int = 0
    _preparing: anyio.Lock = field(default_factory=anyio.Lock)

    @staticmethod
    def of(setting: ValidationSetting, target: Target, candidate: Target) -> "ReferenceProcess":
        """`candidate` is the first that will be compared."""
        arguments: dict[str, JsonValue] = {
            "target": target.model_dump(mode="json"),
            "candidate": candidate.model_dump(mode="json"),
            "setting": setting.shared,
            "state_seed": setting.seed_of("state"),
            "budget": budget(),
        }
        job = Job(kind="reference", arguments=arguments)
        return ReferenceProcess(
            setting, target, Lane(setting.worker, setting.runtime, job, target, setting.seconds)
        )

    @property
    def device(self) -> str:
        """The device's name, once the process has started."""
        return str(self.lane.loaded.get("device", ""))

    async def stage(self, candidate: Target, name: str) -> None:
        """Write the files that the candidate will load. Raises LostAnswer."""
        request = {"do": "stage", "name": name, "candidate": candidate.model_dump(mode="json")}
        self.staged[name] = (await self.lane.answer(request))["digest"]

    async def prepared(self, case: Case) -> Prepared:
        """The case with its inputs generated, once for all candidates; `done_with` it when it is compared."""
        async with self._preparing:
            if case.name not in self._prepared:
                self._prepared[case.name] = await self._prepare(case)
                self._kept += case.elements
        self._users[case.name] += 1
        return self._prepared[case.name]

    async def compared(self, case: Case, candidate: str) -> RunOutcome | Item:
        """The statistics of what the candidate returned; a RunOutcome where there are none."""
        prepared = self._prepared[case.name]
        request = {
            "do": "compare",
            "name": case.name,
            "id": prepared.request["id"],
            "seed": prepared.request["seed"],
            "side": candidate,
            "digests": [prepared.answer["digest"], self.staged[candidate]],
        }
        try:
            item = await self.lane.answer(request)
        except LostAnswer as lost:
            return lost.outcome
        outcome = self.lane.outcome_of(item)
        return item.get("statistics", {}) if outcome is OK else outcome

    async def done_with(self, case: Case) -> None:
        """One user less; what is too large to be kept goes with the last one."""
        self._users[case.name] -= 1
        if self._users[case.name] or self._kept <= KEPT_ELEMENTS:
            return
        prepared = self._prepared.pop(case.name)
        self._kept -= case.elements
        request = {"do": "forget", "name": case.name, "id": prepared.request["id"]}
        try:
            await self.lane.answer(request)
        except LostAnswer:
            return

    async def _prepare(self, case: Case) -> Prepared:
        seed = self.setting.seed_of(case.name)
        request = {**case.model_dump(mode="json"), "id": secrets.token_hex(4), "seed": seed}
        try:
            answer = await self.lane.answer({"do": "prepare", "name": case.name, "case": request})
        except LostAnswer as lost:
            return Prepared(lost.outcome, request, {})
        return Prepared(self.lane.outcome_of(answer), request, answer)
