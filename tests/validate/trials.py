"""Trials of kernel files, opened as a validation opens them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import declaration_of, describe
from pytorch_to_triton.validate.policy import Policy
from pytorch_to_triton.validate.request import ValidationRequest
from pytorch_to_triton.validate.trial import CandidateWorkers, ValidationTrial
from pytorch_to_triton.validate.validate import open_validation

from .plans import plan_cases


async def small_cases(worker: WorkerClient, target: Target, runtime: Runtime) -> tuple[Case, ...]:
    """The plan of a kernel file, without large cases and strides."""
    described = await describe(worker, target, "reference", runtime)
    return plan_cases(declaration_of(described, described), limit=2**12, span=0).cases


@asynccontextmanager
async def trial_of(
    worker: WorkerClient, target: Target, runtime: Runtime
) -> AsyncIterator[tuple[ValidationTrial, Case]]:
    """A trial of a kernel file, and a case of its plan that holds several elements."""
    case = next(case for case in await small_cases(worker, target, runtime) if case.elements > 1)
    async with open_validation(worker, ValidationRequest(candidate=target, seed=7), runtime) as validation:
        candidate = CandidateWorkers(validation.setting, target, "candidate", ())
        yield ValidationTrial(validation.setting, Policy(), validation.reference, candidate), case
