"""What is found out about a submitted file: validated, audited and, on a device, timed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from pytorch_to_triton.audit.audit import audit
from pytorch_to_triton.audit.request import AuditRequest
from pytorch_to_triton.benchmark.timing_trial import Implementation
from pytorch_to_triton.convert.gates import COMPILE, EAGER
from pytorch_to_triton.convert.request import LAST
from pytorch_to_triton.convert.resolve import resolve
from pytorch_to_triton.convert.session import gate
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, before
from pytorch_to_triton.convert.work import ConversionWork, Tables, side_by_side
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.inputs.timing_dims import filled_in
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.finding import AuditReport
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import Attempt, Stage
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict
from pytorch_to_triton.validate.validate import validate


@dataclass(frozen=True)
class Submission:
    """One file at the gate of one stage."""

    worker: WorkerClient
    runtime: Runtime
    listener: ProgressListener
    folder: SessionFolder
    record: SessionRecord
    stage: Stage
    file: Path
    text: str
    against: tuple[Target, ...] = ()
    """Other implementations, timed beside it in the last stage."""
    _works: list[ConversionWork] = field(default_factory=list)

    async def work(self) -> ConversionWork:
        """The session's target, described and traced once: that takes seconds."""
        if not self._works:
            target = await resolve(self.worker, self.record.setting, self.runtime)
            work = ConversionWork(self.worker, self.runtime, self.listener, target, self.folder.path)
            self._works.append(work)
        return self._works[0]

    async def with_points(self, points: tuple[Point, ...]) -> tuple[Submission, tuple[str, ...]]:
        """The same in a session with these sizes that matter, and what was filled in; without any, as it is.

        Raises BadInput for sizes at which the target cannot be called.
        """
        if not points:
            return self, ()
        named = replace(self, record=self.record.with_points(points), _works=[])
        resolved = (await named.work()).request.points
        record = self.record.with_points(resolved)
        self.folder.write(record)
        note = filled_in(points, resolved)
        return replace(named, record=record), (note,) if note else ()

    async def evidence(self) -> gate.Evidence:
        """What the tools find out, the cheapest first; what is wrong is not timed."""
        installed = await versions(self.worker, self.runtime)
        evidence = gate.Evidence(self.file, self.text, installed.triton)
        if gate.unknown_names(self.text, installed.triton):
            return evidence
        how = "interpreted" if self.runtime.interpreter else "compiled"
        judged_with = f"torch {installed.torch}, Triton {installed.triton}, {how}"
        if self.record.setting.at:
            judged_with += f", at {'; '.join(self.record.setting.at)}"
        passed = self.passed_before(judged_with)
        try:
            verdict, report = passed or (await self.verdict(), await self.report())
        except BadInput as refusal:
            return replace(evidence, refusal=refusal)
        previous = before(self.folder.attempts(), self.stage)
        right = verdict.verdict == "passed"
        tables = await self.times(previous) if right and not self.runtime.interpreter else ()
        return replace(
            evidence,
            verdict=verdict,
            audit=report,
            tables=tables,
            has_previous=previous is not None,
            judged_with=judged_with,
        )

    def passed_before(self, judged_with: str) -> tuple[Verdict, AuditReport] | None:
        """What was said of the same text when it was right, by the same torch and Triton."""
        for attempt in reversed(self.folder.attempts()):
            if attempt.judged_with == judged_with and self.folder.text(attempt) == self.text:
                verdict, report = self.folder.validation(attempt), self.folder.audit(attempt)
                if verdict and report and verdict.verdict == "passed":
                    return verdict, report
        return None

    async def verdict(self) -> Verdict:
        """The validation of the file against the session's target, in full unless it soon shows a mistake."""
        candidate = Target(path=self.file)
        request = self.record.setting.validation_of(candidate, self.stage, self.record.allowed)
        request = request.model_copy(update={"stop": "early"})
        return await validate(self.worker, request, self.runtime, self.listener)

    async def report(self) -> AuditReport:
        """The audit by source and by what compilers make of it; nothing is run for it again."""
        setting = self.record.setting
        request = AuditRequest(
            targets=(Target(path=self.file),),
            evidence="compiled",
            archs=setting.archs,
            reference=setting.target,
            options=setting.options,
            points=setting.points,
            seconds=setting.seconds,
        )

        async def runtime() -> Runtime:
            return self.runtime

        return await audit(self.worker, request, runtime, self.listener)

    async def times(self, previous: Attempt | None) -> Tables:
        """The file beside eager PyTorch, the stage before and, in the last stage, torch.compile."""
        target = self.record.setting.target
        implementations = [
            Implementation(EAGER, target, "reference"),
            Implementation(gate.SUBMITTED, Target(path=self.file), "candidate"),
        ]
        if previous is not None:
            kept = Target(path=self.folder.kernel(previous))
            implementations.append(Implementation(gate.PREVIOUS, kept, "candidate"))
        if self.stage == LAST:
            implementations.append(Implementation(COMPILE, target, "reference", "default"))
            implementations += [Implementation(str(peer), peer, "candidate") for peer in self.against]
        return await side_by_side(await self.work(), implementations)
