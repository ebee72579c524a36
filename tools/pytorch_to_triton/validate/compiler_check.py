"""What the interpreter does not show: it runs Python that Triton's compiler does not take."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields

from pytorch_to_triton.errors import MissingRequirement
from pytorch_to_triton.hardware.architectures import DEFAULT, Architecture, architecture
from pytorch_to_triton.hardware.versions import versions
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.schema.case_group import DECLARED_GROUPS
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.verdict import Violation
from pytorch_to_triton.validate.behavior import ADDRESS, violation
from pytorch_to_triton.validate.phrases import cut
from pytorch_to_triton.validate.run_outcome import LONGEST, OK
from pytorch_to_triton.validate.trial import ValidationTrial, request_for
from pytorch_to_triton.worker import wire
from pytorch_to_triton.worker.wire.as_json import decoded
from pytorch_to_triton.worker.wire.validation import CandidateRequest, CompilerRefusal, FrontEndAnswer

AMD_DEFAULT = "gfx942"
NEEDS = ("triton.experimental.gluon", "pytorch_to_triton_worker.jobs.front_end")
"""What each process would import before it compiles."""


def compiled(runtime: Runtime) -> Runtime:
    """The same Python, with kernels compiled."""
    return runtime.model_copy(update={"interpreter": False})


async def check_compiler(trial: ValidationTrial, cases: Sequence[Case], found: list[Violation]) -> None:
    """Have the compiler read what the declared cases launch; the trial is one under the interpreter.

    No GPU is needed, and nothing is found where the compiler cannot be asked.
    """
    setting = trial.setting
    declared = [case for case in cases if case.group in DECLARED_GROUPS] or cases
    prepared = [(case, await trial.reference.prepare(case)) for case in declared]
    requests = [request_for(case, ready) for case, ready in prepared if ready.outcome is OK]
    installed = await versions(setting.worker, setting.runtime)
    gpu = architecture(AMD_DEFAULT if installed.rocm else DEFAULT)
    job, runtime = job_of(trial, gpu, requests), compiled(setting.runtime)
    with suppress(MissingRequirement):
        outcome = await setting.worker.ask(job, runtime, seconds=setting.seconds)
        answer: FrontEndAnswer | None = decoded(FrontEndAnswer | None, outcome.answer)
        if answer is not None and answer.refusal is not None:
            found.append(refused(answer.refusal, installed.triton, gpu))
    for case, _ in prepared:
        await trial.reference.done_with(case)


def job_of(trial: ValidationTrial, gpu: Architecture, requests: Sequence[CandidateRequest]) -> Job:
    """The candidate as the trial calls it, for a GPU that is not there."""
    job = trial.candidate.job()
    arguments = {name: job.arguments[name] for name in ("target", "setting", "secret")}
    known = {field.name: getattr(gpu, field.name) for field in fields(wire.OfflineGpu)}
    return Job(
        kind="front_end",
        arguments={**arguments, "gpu": wire.OfflineGpu(**known), "requests": requests},
        needs=NEEDS,
    )


def refused(refusal: CompilerRefusal, triton: str, gpu: Architecture) -> Violation:
    """A line that the compiler does not take."""
    said = cut(ADDRESS.sub("", refusal.message), LONGEST)
    return violation(
        "does_not_compile",
        f"{refusal.kernel} does not compile (Triton {triton}, {gpu.name}): "
        f"line {refusal.line} `{refusal.source}`: {said}",
        "Write it as Triton's language has it: the interpreter runs more of Python than that.",
        file=refusal.file,
        line=refusal.line,
    )
