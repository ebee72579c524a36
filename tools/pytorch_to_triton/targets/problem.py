"""What a tool works on: both sides as the worker describes them, and their inputs."""

from dataclasses import dataclass

from pytorch_to_triton.inputs.declaration import Declaration, Options
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.description import Description
from pytorch_to_triton.schema.job import Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import declaration_of, describe


@dataclass(frozen=True)
class Problem:
    """A candidate, the reference it is compared with, and the inputs of both."""

    reference: Description
    candidate: Description
    declaration: Declaration


async def resolve_problem(
    worker: WorkerClient,
    candidate: Target | Description,
    reference: Target | Description | None,
    options: Options,
    runtime: Runtime,
    *,
    seconds: float,
) -> Problem:
    """Describe what is not described yet, and merge the declarations with `options`, which win.

    Without a reference the candidate stands on both sides.
    Raises TargetNotFound or TargetBroken for a side that cannot be used, BadDeclaration for its inputs.
    """
    if isinstance(reference, Target):
        reference = await describe(worker, reference, "reference", runtime, seconds=seconds)
    if isinstance(candidate, Target):
        candidate = await describe(worker, candidate, "candidate", runtime, seconds=seconds)
    reference = reference or candidate
    return Problem(reference, candidate, declaration_of(reference, candidate, options))


def reference_of(candidate: Target, reference: Target | None) -> Target:
    """The reference that is named, else the one in the candidate's own file."""
    return reference or Target(path=candidate.path, init=candidate.init)
