"""Submitting a file to the gate of a session's current stage, and what follows when it opens."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.convert.gates import EAGER
from pytorch_to_triton.convert.session import gate
from pytorch_to_triton.convert.session.answers import step_of
from pytorch_to_triton.convert.session.evidence import Submission
from pytorch_to_triton.convert.session.next_stage import later_draft, put_next
from pytorch_to_triton.convert.session.start import digest, digest_of_file
from pytorch_to_triton.convert.session.state import LAST, STAGES, opens, stage_of
from pytorch_to_triton.convert.session.store import SessionFolder, SessionRecord, attempt_path, now
from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import Attempt, SessionStep, Stage
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.verdict import Verdict


@dataclass(frozen=True)
class SubmitRequest:
    """What is submitted, and how it is judged."""

    file: Path | None = None
    """None: the stage's own."""
    through: Stage = 1
    """The last stage whose gate the file may open; the current one's at least."""
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
) -> SessionStep:
    """Run the gates of the current stage and of those up to `through` on a file; the attempt is kept.

    It counts for the last gate that it opens: what an earlier stage asks, a later one asks too. In place of
    an unchanged draft, the draft of stage `through` is taken. Raises BadInput where the file cannot be read
    or changed meanwhile, and where the target did.
    """
    record = folder.record()
    refuse_changed_target(record)
    with folder.locked():
        current = stage_of(folder.attempts())
        path = request.file or folder.file(current)
        text = read(path)
        refuse_unwritten(record, current, path, text)
        last = max(current, request.through)
        submission = Submission(worker, runtime, listener, folder, record, last, path, text, request.against)
        later = None if request.file else await later_draft(submission, current)
        notes = (f"{later.file.name} is drafted, and was submitted for {path.name}.",) if later else ()
        return await judged(later or submission, current, request.accepted, notes)


async def judged(
    submission: Submission, current: Stage, accepted: str, notes: tuple[str, ...]
) -> SessionStep:
    """Run the gates from the current stage on, and keep the attempt. Raises BadInput as `submit`."""
    folder, path, text, last = submission.folder, submission.file, submission.text, submission.stage
    evidence = await submission.evidence()
    if read(path) != text:
        raise BadInput(f"{path} changed while it was checked.", "Submit it again.")
    gates = {stage: gate.conditions(stage, evidence) for stage in STAGES if current <= stage <= last}
    opened = [stage for stage in gates if opens(gates[stage], accepted, gate.SPEED)]
    stage = opened[-1] if opened else current
    timing = evidence.table.of(gate.SUBMITTED) if evidence.table else None
    eager = evidence.table.of(EAGER) if evidence.table else None
    number = folder.next_number()
    attempt = Attempt(
        number=number,
        stage=stage,
        opened=bool(opened),
        file=attempt_path(number),
        conditions=gates[stage],
        median_ms=timing.median_ms if timing else None,
        eager_ms=eager.median_ms if eager else None,
        accepted=accepted,
        judged_with=evidence.judged_with,
        when=now(),
    )
    notes += changed_since(folder, stage, path)
    if not attempt.opened:
        folder.keep(attempt, text, evidence.verdict, evidence.audit)
        return step_of(folder, "shut", (*notes, *again(evidence.verdict)))
    # The next file first: once the attempt is there, the session stands at the next stage.
    if stage != LAST:
        notes += await put_next(submission, STAGES[stage])
    elif not folder.file(LAST).exists():
        places.write_atomically(folder.file(LAST), text)
    folder.keep(attempt, text, evidence.verdict, evidence.audit)
    beyond = gates[STAGES[stage]] if stage < last else ()
    return step_of(folder, "finished" if stage == LAST else "opened", notes, beyond)


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
