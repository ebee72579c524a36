"""Submitting a file to the gate of a session's current stage, and what follows when it opens."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.convert.gates import EAGER
from pytorch_to_triton.convert.session import gate
from pytorch_to_triton.convert.session.answers import session_of
from pytorch_to_triton.convert.session.evidence import Submission
from pytorch_to_triton.convert.session.next_stage import put_next
from pytorch_to_triton.convert.session.start import digest, digest_of_file
from pytorch_to_triton.convert.session.state import LAST, opens, stage_of
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, attempt_path, now
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import Attempt, ConversionSession, Stage
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict


@dataclass(frozen=True)
class SubmitRequest:
    """What is submitted, and how it is judged."""

    file: Path | None = None
    """None: the stage's own."""
    accepted: str = ""
    """A reason for which a slower stage may pass."""
    against: tuple[Target, ...] = ()
    """Other implementations that are timed beside the last stage, on a device."""


async def submit(
    worker: WorkerClient,
    folder: SessionFolder,
    request: SubmitRequest,
    runtime: Runtime,
    listener: ProgressListener,
) -> ConversionSession:
    """Run the gate of the current stage on a file; the attempt is kept, whatever comes of it.

    Raises BadInput where the file cannot be read or changed meanwhile, and where the target did.
    """
    record = folder.record()
    refuse_changed_target(record)
    with folder.locked():
        stage = stage_of(folder.attempts())
        path = request.file or folder.file(stage)
        text = read(path)
        refuse_unwritten(record, stage, path, text)
        submission = Submission(worker, runtime, listener, folder, record, stage, path, text, request.against)
        evidence = await submission.evidence()
        if read(path) != text:
            raise BadInput(f"{path} changed while it was checked.", "Submit it again.")
        conditions = gate.conditions(stage, evidence)
        timing = evidence.table.of(gate.SUBMITTED) if evidence.table else None
        eager = evidence.table.of(EAGER) if evidence.table else None
        number = folder.next_number()
        attempt = Attempt(
            number=number,
            stage=stage,
            opened=opens(conditions, request.accepted, gate.SPEED),
            file=attempt_path(number),
            conditions=conditions,
            median_ms=timing.median_ms if timing else None,
            eager_ms=eager.median_ms if eager else None,
            accepted=request.accepted,
            when=now(),
        )
        if not attempt.opened:
            folder.keep(attempt, text, evidence.verdict, evidence.audit)
            return session_of(folder, "shut", (*changed_since(folder, stage, path), *again(evidence.verdict)))
        # The next file first: once the attempt is there, the session stands at the next stage.
        notes = changed_since(folder, stage, path)
        if stage != LAST:
            notes += await put_next(submission, text, (2, 3)[stage - 1])
        folder.keep(attempt, text, evidence.verdict, evidence.audit)
        return session_of(folder, "finished" if stage == LAST else "opened", notes)


def refuse_unwritten(record: SessionRecord, stage: Stage, path: Path, text: str) -> None:
    """Raises BadInput for the file that was put there for somebody to write a kernel into."""
    if stage == 1 and stage not in record.drafted and digest(text) == record.put.get(stage):
        raise BadInput(f"{path} is as it was put there: it has no kernel yet.", "Write one, then submit it.")


def changed_since(folder: SessionFolder, stage: Stage, submitted: Path) -> tuple[str, ...]:
    """That the file of a stage behind was changed after it had passed, which this submission did not take."""
    passed = [attempt for attempt in folder.attempts() if attempt.opened and attempt.stage < stage]
    notes = []
    for number in sorted({attempt.stage for attempt in passed}):
        latest = next(attempt for attempt in reversed(passed) if attempt.stage == number)
        file = folder.file(number)
        with suppress(OSError, BadInput):
            if file != submitted and read(file) != read(folder.kernel(latest)):
                notes.append(
                    f"{file.name} has changed since it passed; what was submitted is {submitted.name}. "
                    "`convert submit --file` takes another file."
                )
    return tuple(notes)


def again(verdict: Verdict | None) -> tuple[str, ...]:
    """How the telling case is run again, where a case is wrong."""
    if verdict is None or verdict.verdict == "passed":
        return ()
    smallest = f"smallest case with this mistake, {verdict.smallest}," if verdict.smallest else "telling case"
    return (f"Run the {smallest} alone: {verdict.replay}",)


def refuse_changed_target(record: SessionRecord) -> None:
    """Raises BadInput where the target's file is gone or another one than at the start."""
    target = record.setting.target
    hint = "Start a new session for it; this one keeps its attempts."
    try:
        now_there = digest_of_file(target.path)
    except OSError as problem:
        raise BadInput(f"{target.path} cannot be read any more: {problem.strerror}.", hint) from problem
    if now_there != record.target_digest:
        raise BadInput(f"{target.path} has changed since the session started.", hint)


def read(path: Path) -> str:
    """A submitted file's text. Raises BadInput."""
    try:
        return places.read_regular(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        hint = "Name a Python file, or the stage's own."
        raise BadInput(f"{path} cannot be read: {why}.", hint) from problem
