"""Whether a reference runs at all on what is declared, asked where a trace of it has failed."""

from collections.abc import Mapping
from itertools import islice

from pytorch_to_triton.errors import BadDeclaration, TargetBroken
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import point_name
from pytorch_to_triton.inputs.sizes import middle_point
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.no_answer import refusal_of_end
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.targets.describe import HINTS, refusal_of_failure
from pytorch_to_triton.worker.wire import Failure

MOST_ELEMENTS = 2**22
"""Of the call: larger ones take long, and are left to validation."""
MOST_CALLS = 8
"""Each takes a process of its own."""
CORRECT_IT = (
    "Correct the function, or declare inputs that it takes: INPUTS and DIMS, or --input and --dim; `convert "
    "--example FILE.py:NAME` takes them from a function that calls it."
)


async def refuse_unrunnable(
    worker: WorkerClient, target: Target, declaration: Declaration, runtime: Runtime, *, seconds: float
) -> None:
    """Call the target at the middle of its declared sizes, once with each declared value of its constants.

    Raises TargetBroken where that fails.
    """
    point = declaration.nearest(middle_point(declaration.dims)) if declaration.inputs else None
    for values, with_values in islice(declaration.each_value(), MOST_CALLS):
        if point is not None and (case := case_at(with_values, point)):
            named = case.model_copy(update={"name": point_name({**point, **values}) or case.name})
            await _refuse_failing(worker, target, named, runtime, seconds=seconds)


async def _refuse_failing(
    worker: WorkerClient, target: Target, case: Case, runtime: Runtime, *, seconds: float
) -> None:
    outcome = await called(worker, target, case, runtime, seconds=seconds)
    if outcome.failure is not None:
        if outcome.failure.type in HINTS or outcome.failure.type == "SystemExit":
            raise refusal_of_failure(outcome.failure)
        raise TargetBroken(raised(target, case, outcome.failure), CORRECT_IT)
    if outcome.answer is None:
        raise refusal_of_end(outcome, target)


async def called(
    worker: WorkerClient, target: Target, case: Case, runtime: Runtime, *, seconds: float
) -> Outcome:
    """What comes of one call of the target."""
    device = "cpu" if runtime.interpreter else "cuda"
    plain = {**case.model_dump(mode="json"), "seed": 0}
    job = Job(kind="first_call", arguments={"target": target.as_json(), "case": plain, "device": device})
    return await worker.ask(job, runtime, seconds=seconds)


def case_at(
    declaration: Declaration, point: Mapping[str, int], *, most_elements: int = MOST_ELEMENTS
) -> Case | None:
    """The call at these sizes; None where it is large or cannot be drawn."""
    try:
        case = declaration.case(point)
    except BadDeclaration:
        return None
    return case if case.elements <= most_elements else None


def raised(target: Target, case: Case, failure: Failure) -> str:
    """What was raised, where, and at which sizes."""
    place = f", {failure.file}:{failure.line}" if failure.file else ""
    return f"The reference {target} raises on its declared inputs: {failure.named} ({case.name}{place})."
