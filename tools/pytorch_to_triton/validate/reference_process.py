"""The reference of a validation: its inputs and its truth, for any number of candidates."""

import secrets
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.job import Job
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.validate.run_outcome import OK, RunOutcome
from pytorch_to_triton.validate.target_worker import LostAnswer, TargetWorker, ValidationSetting
from pytorch_to_triton.worker.wire import validation
from pytorch_to_triton.worker.wire.statistics import CaseStatistics

NEEDS = ("torch.fx.experimental.symbolic_shapes",)
"""What torch's own meta kernels import in most references' processes."""
KEPT_ELEMENTS = 2**27
"""Inputs stay on disk for further candidates up to this many elements over all cases."""


@dataclass(frozen=True)
class Prepared:
    """A case whose inputs lie in the exchange folder, unless the reference could not do it."""

    outcome: RunOutcome
    id: str
    """Of the case's folders in the exchange folder."""
    seed: int
    digest: str = ""
    aliases: frozenset[tuple[str, str]] = frozenset()
    """The reference's own outputs, each with an input or another output whose memory it shares."""


@dataclass
class ReferenceProcess:
    """One process that prepares cases and compares what candidates returned."""

    setting: ValidationSetting
    target: Target
    worker: TargetWorker
    staged: dict[str, str] = field(default_factory=dict)
    """Digests of the candidates' files, by the names of the candidates."""
    device: str = ""
    """The device's name, once the process has started."""
    free_bytes: int | None = None
    """Of the device; None for a CPU."""
    _prepared: dict[str, Prepared] = field(default_factory=dict)
    _users: Counter[str] = field(default_factory=Counter)
    _kept: int = 0
    _preparing: anyio.Lock = field(default_factory=anyio.Lock)

    @staticmethod
    def of(setting: ValidationSetting, target: Target, candidate: Target) -> "ReferenceProcess":
        """`candidate` is the first that will be compared."""
        arguments: validation.ReferenceArguments = {
            "target": target.as_json(),
            "candidate": candidate.as_json(),
            "setting": setting.shared,
            "state_seed": setting.seed_of("state"),
        }
        job = Job(kind="reference", arguments=arguments, needs=NEEDS)
        return ReferenceProcess(
            setting, target, TargetWorker(setting.worker, setting.runtime, job, target, setting.seconds)
        )

    async def start(self) -> Description | None:
        """Load the reference; what it is, where the process says it. Raises TargetBroken, LostAnswer."""
        item = await self.worker.start()
        assert isinstance(item, validation.ReferenceLoadedItem)
        self.device, self.free_bytes = item.device, item.free_bytes
        return None if item.description is None else Description.model_validate(item.description)

    async def stage(self, candidate: Target, name: str) -> None:
        """Write the files that the candidate will load. Raises LostAnswer."""
        item = await self.worker.answer(validation.StageRequest(name=name, candidate=candidate.as_json()))
        assert isinstance(item, validation.StagedItem)
        self.staged[name] = item.digest

    async def prepared(self, case: Case) -> Prepared:
        """The case with its inputs generated, once for all candidates; `done_with` it when it is compared."""
        async with self._preparing:
            if case.name not in self._prepared:
                self._prepared[case.name] = await self._prepare(case)
                self._kept += case.elements
        self._users[case.name] += 1
        return self._prepared[case.name]

    async def measured(self, case: Case) -> tuple[int, ...]:
        """The elements of each value that the reference computes in this case; none where that is lost."""
        request = validation.MeasureRequest(name=case.name, case=as_wire(case, secrets.token_hex(4), 0))
        try:
            item = await self.worker.answer(request)
        except LostAnswer:
            return ()
        assert isinstance(item, validation.MeasuredItem)
        return item.elements

    async def compared(self, case: Case, candidate: str) -> RunOutcome | CaseStatistics:
        """The statistics of what the candidate returned; a RunOutcome where there are none."""
        prepared = self._prepared[case.name]
        request = validation.CompareRequest(
            name=case.name,
            id=prepared.id,
            seed=prepared.seed,
            side=candidate,
            digests=(prepared.digest, self.staged[candidate]),
        )
        try:
            item = await self.worker.answer(request)
        except LostAnswer as lost:
            return lost.outcome
        return item.statistics if isinstance(item, validation.ComparedItem) else self.worker.outcome_of(item)

    async def done_with(self, case: Case) -> None:
        """One user less; what is too large to be kept goes with the last one."""
        self._users[case.name] -= 1
        if self._users[case.name] or self._kept <= KEPT_ELEMENTS:
            return
        prepared = self._prepared.pop(case.name)
        self._kept -= case.elements
        try:
            await self.worker.answer(validation.ForgetRequest(name=case.name, id=prepared.id))
        except LostAnswer:
            return

    async def _prepare(self, case: Case) -> Prepared:
        prepared = Prepared(OK, secrets.token_hex(4), self.setting.seed_of(case.name))
        request = validation.PrepareRequest(name=case.name, case=as_wire(case, prepared.id, prepared.seed))
        try:
            item = await self.worker.answer(request)
        except LostAnswer as lost:
            return replace(prepared, outcome=lost.outcome)
        if isinstance(item, validation.PreparedItem):
            return replace(prepared, digest=item.digest, aliases=item.aliases)
        return replace(prepared, outcome=self.worker.outcome_of(item))


def as_wire(case: Case, case_id: str, seed: int) -> dict[str, Any]:
    """The case as job `reference` takes it."""
    return {**case.model_dump(mode="json"), "id": case_id, "seed": seed}
