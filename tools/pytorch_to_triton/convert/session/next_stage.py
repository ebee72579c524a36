"""The file of the next stage: drafted after a draft, else what passed, headed by what it is to bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytorch_to_triton import places
from pytorch_to_triton.convert.session.evidence import Submission
from pytorch_to_triton.convert.session.start import digest, digest_of_file
from pytorch_to_triton.convert.session.state import LAST
from pytorch_to_triton.convert.session.store import SessionRecord
from pytorch_to_triton.convert.tuning import tune
from pytorch_to_triton.convert.work import ConversionWork
from pytorch_to_triton.draft.file.module import STAGE_NAMES
from pytorch_to_triton.draft.library import PURE
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.schema.session import Stage

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


async def later_draft(submission: Submission, current: Stage) -> Submission | None:
    """The draft of the last stage that is asked for, put there, in place of the unchanged one of `current`.

    None where that is no unchanged draft, or the last stage's file is somebody's own or cannot be drafted.
    """
    last = submission.stage
    if last == current or not is_draft(submission) or is_changed(submission, last):
        return None
    return await put_draft(submission, last)


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
    """The next stage's draft, on a device with measured launch configurations; None where there is none."""
    target = await submission.target()
    try:
        origin = target.convertible()
        if stage == LAST and not submission.runtime.interpreter:
            folder = submission.folder.path
            work = ConversionWork(submission.worker, submission.runtime, submission.listener, target, folder)
            return (await tune(work, [])).drafted.text
        return origin.drafted(stage, PURE if target.request.pure else None).text
    except NotConvertible:
        return None


def with_tasks(text: str, stage: Stage) -> str:
    """A file that was written by hand, headed by what the next stage asks."""
    tasks = "".join(f"#   - {task}\n" for task in TASKS[stage])
    return f"# Stage {stage} of 3 ({STAGE_NAMES[stage]}) is to bring:\n{tasks}{text}"
