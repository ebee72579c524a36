"""Submitting a file to the gate of a session's current stage, putting the next stage's file there where it
opens, and going back to an earlier attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pytorch_to_triton import places
from pytorch_to_triton.convert.compiled_figures import figure_lines
from pytorch_to_triton.convert.gates import EAGER
from pytorch_to_triton.convert.request import LAST
from pytorch_to_triton.convert.session import gate
from pytorch_to_triton.convert.session.answers import step_of
from pytorch_to_triton.convert.session.evidence import Submission
from pytorch_to_triton.convert.session.start import digest, digest_of_file
from pytorch_to_triton.convert.session.store import (
    STAGES,
    SessionFolder,
    SessionRecord,
    attempt_path,
    now,
    stage_of,
)
from pytorch_to_triton.convert.work import Tables, ranked_ways, tune
from pytorch_to_triton.draft.file.module import STAGE_NAMES
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import BadInput, NotConvertible
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.progress import ProgressListener
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.session import Attempt, SessionStep, Stage, TimedAt
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
    points: tuple[Point, ...] = ()
    """The sizes that matter from here on; none: those of the session."""


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
        submission, notes = await submission.with_points(request.points)
        is_new = last > current or bool(request.points)
        drafted = await draft_anew(submission) if is_new and not request.file else None
        notes += drafted_in_place(drafted, submission) if drafted else ()
        return await judged(drafted or submission, current, request.accepted, notes)


async def judged(
    submission: Submission, current: Stage, accepted: str, notes: tuple[str, ...]
) -> SessionStep:
    """Run the gates from the current stage on, and keep the attempt. Raises BadInput as `submit`."""
    folder, path, text, last = submission.folder, submission.file, submission.text, submission.stage
    evidence = await submission.evidence()
    if read(path) != text:
        raise BadInput(f"{path} changed while it was checked.", "Submit it again.")
    gates = {stage: gate.conditions(stage, evidence) for stage in STAGES if current <= stage <= last}
    opened = [stage for stage in gates if gate.opens(gates[stage], accepted)]
    stage = opened[-1] if opened else current
    number = folder.next_number()
    attempt = Attempt(
        number=number,
        stage=stage,
        opened=bool(opened),
        file=attempt_path(number),
        conditions=gates[stage],
        times=tuple(times_in(evidence.tables)),
        accepted=accepted,
        judged_with=evidence.judged_with,
        when=now(),
    )
    notes += (*compiled_at_named(submission, evidence), *changed_since(folder, stage, path))
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


def times_in(tables: Tables) -> Iterator[TimedAt]:
    """What was measured of what was submitted."""
    for table in tables:
        timing, eager = table.of(gate.SUBMITTED), table.of(EAGER)
        if timing is not None:
            eager_ms = eager.median_ms if eager else None
            yield TimedAt(dims=table.dims, median_ms=timing.median_ms, eager_ms=eager_ms)


def compiled_at_named(submission: Submission, evidence: gate.Evidence) -> tuple[str, ...]:
    """What the compiler makes of the file at the session's sizes, where it has any."""
    if evidence.audit is None or not submission.record.setting.at:
        return ()
    return tuple(f"Compiled for {line}." for line in figure_lines(evidence.audit.compiled))


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


TASKS = {
    2: (
        "every load and store coalesced: neighbouring lanes on neighbouring elements",
        "blocks that are powers of two, chosen by size, and masks for what they overhang",
        "@triton.autotune over a handful of configurations, with a key of the sizes that matter",
        "one pass over memory where two are not needed; accumulation in float32",
    ),
    3: (
        "launch configurations fixed to the measured best, or a key that covers the sizes in use",
        "no spills, enough programs for the device, loops pipelined where they load",
        "times beside eager PyTorch and torch.compile, and the share of the device's limit",
    ),
}
"""What each later stage is to bring, for a file that was written by hand."""


async def put_next(submission: Submission, stage: Stage) -> tuple[str, ...]:
    """Put the next stage's file there: drafted after a draft, else the same file with what is to be done.

    One that somebody has changed is kept; notes say which case it is.
    """
    file, text = submission.folder.file(stage), submission.text
    if is_changed(submission, stage):
        return (f"{file} was there already and is kept.",)
    if is_draft(submission) and await put_draft(submission, stage):
        return ()
    put(submission, stage, with_tasks(text, stage), submission.record.drafted)
    return (f"{file} is the file that passed, headed by what stage {stage} is to bring.",)


async def draft_anew(submission: Submission) -> Submission | None:
    """The draft of the last stage that is asked for, put there, in place of an unchanged one.

    None where that is no unchanged draft, or the last stage's file is somebody's own or cannot be drafted.
    """
    if not is_draft(submission) or is_changed(submission, submission.stage):
        return None
    return await put_draft(submission, submission.stage)


def drafted_in_place(drafted: Submission, before: Submission) -> tuple[str, ...]:
    """That another draft is submitted than the one that was there."""
    if drafted.text == before.text:
        return ()
    if drafted.file == before.file:
        return (f"{drafted.file.name} is drafted again, for these sizes.",)
    return (f"{drafted.file.name} is drafted, and was submitted for {before.file.name}.",)


def is_draft(submission: Submission) -> bool:
    """Whether what is submitted is a draft as it was put there."""
    return digest(submission.text) in submission.record.drafted.values()


def is_changed(submission: Submission, stage: Stage) -> bool:
    """Whether a stage's file is there and differs from what was put there."""
    file = submission.folder.file(stage)
    return file.exists() and digest_of_file(file) != submission.record.put.get(stage)


async def put_draft(submission: Submission, stage: Stage) -> Submission | None:
    """The stage's draft, put there, as what is submitted; None where there is none."""
    text = await drafted_text(submission, stage)
    if text is None:
        return None
    record = put(submission, stage, text, {**submission.record.drafted, stage: digest(text)})
    return replace(submission, record=record, file=submission.folder.file(stage), text=text)


def put(submission: Submission, stage: Stage, text: str, drafted: Mapping[int, str]) -> SessionRecord:
    """Write a stage's file; the session's record, which has it."""
    record = submission.record
    record = record.model_copy(update={"drafted": drafted, "put": {**record.put, stage: digest(text)}})
    submission.folder.write(record)
    places.write_atomically(submission.folder.file(stage), text)
    return record


async def drafted_text(submission: Submission, stage: Stage) -> str | None:
    """A stage's draft, on a device after the first in the fastest way and, of the last stage, with measured
    launch configurations; None where there is none."""
    work = await submission.work()
    try:
        origin = work.target.convertible()
        if stage == 1:
            return origin.drafted(stage, PURE).text
        if submission.runtime.interpreter:
            return origin.drafted(stage, PURE if work.request.pure else None).text
        ranked = await ranked_ways(work)
        if stage == LAST:
            return (await tune(work, [], ranked)).drafted.text
        return work.drafted(stage, ranked.fastest).text
    except NotConvertible:
        return None


def with_tasks(text: str, stage: Stage) -> str:
    """A file that was written by hand, headed by what the next stage asks."""
    tasks = "".join(f"#   - {task}\n" for task in TASKS[stage])
    return f"# Stage {stage} of 3 ({STAGE_NAMES[stage]}) is to bring:\n{tasks}{text}"


def restore(folder: SessionFolder, number: int) -> SessionStep:
    """Go back to an attempt whose gate opened: its file is the stage's again, and counts as the best.

    What the stage's file held is kept as an attempt if it was submitted, else beside it. Raises BadInput for
    an attempt that is not there or did not pass.
    """
    with folder.locked():
        attempts = folder.attempts()
        chosen = next((attempt for attempt in attempts if attempt.number == number), None)
        if chosen is None:
            numbers = ", ".join(str(attempt.number) for attempt in attempts) or "none"
            raise BadInput(f"{folder.path} has no attempt {number}.", f"Its attempts are: {numbers}.")
        if not chosen.opened:
            raise BadInput(
                f"Attempt {number} did not pass its gate.", f"Its file is {folder.kernel(chosen)}: submit it."
            )
        text = folder.text(chosen)
        notes = tuple(set_aside(folder, attempts, chosen.stage, text))
        places.write_atomically(folder.file(chosen.stage), text)
        again = folder.next_number()
        copy = {"number": again, "file": attempt_path(again), "restored": number, "when": now()}
        folder.keep(chosen.model_copy(update=copy), text)
        return step_of(folder, "restored", notes)


def set_aside(folder: SessionFolder, attempts: tuple[Attempt, ...], stage: Stage, text: str) -> list[str]:
    """Keep what a stage's file holds that was never submitted; a note about it."""
    file = folder.file(stage)
    if not file.exists():
        return []
    present = file.read_text(encoding="utf-8")
    submitted = map(folder.text, attempts)
    if present == text or present in submitted:
        return []
    kept = file.with_name(f"{file.stem}.before_restore.py")
    places.write_atomically(kept, present)
    return [f"What {file.name} held was never submitted: it is kept as {kept.name}."]
