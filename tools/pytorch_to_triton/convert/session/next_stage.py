"""The file of the next stage: drafted after a draft, else what passed, headed by what it is to bring."""

from __future__ import annotations

from pytorch_to_triton import places
from pytorch_to_triton.convert.session.evidence import Submission
from pytorch_to_triton.convert.session.start import digest, digest_of_file, request_of
from pytorch_to_triton.convert.session.state import LAST
from pytorch_to_triton.convert.tuning import tune
from pytorch_to_triton.convert.work import ConversionWork
from pytorch_to_triton.draft.file.module import STAGE_NAMES, Source
from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.tracing import Traced
from pytorch_to_triton.inputs.declaration import Declaration
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


async def put_next(submission: Submission, text: str, stage: Stage) -> tuple[str, ...]:
    """Put the next stage's file there: drafted after a draft, else the same file with what is to be done.

    One that somebody has changed is kept; notes say which case it is.
    """
    folder, record = submission.folder, submission.record
    file = folder.file(stage)
    if file.exists() and digest_of_file(file) != record.put.get(stage):
        return (f"{file} was there already and is kept.",)
    draft = None
    if record.drafted.get(submission.stage) == digest(text):
        draft = await drafted_text(submission, stage)
    found = draft or with_tasks(text, stage)
    drafted = {**record.drafted, stage: digest(found)} if draft else record.drafted
    folder.write(record.model_copy(update={"drafted": drafted, "put": {**record.put, stage: digest(found)}}))
    places.write_atomically(file, found)
    return () if draft else (f"{file} is the file that passed, headed by what stage {stage} is to bring.",)


async def drafted_text(submission: Submission, stage: Stage) -> str | None:
    """The next stage's draft, on a device with measured launch configurations; None where there is none."""
    found = await submission.prepared()
    try:
        if stage == LAST and not submission.runtime.interpreter and found.traced and found.source:
            work = conversion_of(submission, found.traced, found.source, found.declaration)
            return (await tune(work, [])).drafted.text
        return found.drafted(stage).text
    except NotConvertible:
        return None


def conversion_of(
    submission: Submission, traced: Traced, source: Source, declaration: Declaration
) -> ConversionWork:
    """The session as a conversion in one go, for what both do alike."""
    setting = submission.record.setting
    return ConversionWork(
        worker=submission.worker,
        runtime=submission.runtime,
        listener=submission.listener,
        target=setting.target,
        options=request_of(setting).options,
        folder=submission.folder.path,
        source=source,
        traced=traced,
        declaration=declaration,
        seed=setting.seed,
        seconds=setting.seconds,
        backward=setting.backward,
        thorough=False,
        pure=setting.pure,
    )


def with_tasks(text: str, stage: Stage) -> str:
    """A file that was written by hand, headed by what the next stage asks."""
    tasks = "".join(f"#   - {task}\n" for task in TASKS[stage])
    return f"# Stage {stage} of 3 ({STAGE_NAMES[stage]}) is to bring:\n{tasks}{text}"
