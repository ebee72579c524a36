"""validate: does a kernel compute what its reference computes, wherever kernels are known to break?"""

import math
import secrets
from collections.abc import Iterator, Sequence

from pytorch_to_triton.errors import EnvironmentLacks
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.gpu.versions import versions
from pytorch_to_triton.gpu.watch import Watch
from pytorch_to_triton.schema.case import Case, tensors_in
from pytorch_to_triton.schema.declaration import NO_OPTIONS, Options
from pytorch_to_triton.schema.description import Description, Example
from pytorch_to_triton.schema.job import Mode
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.schema.verdict import CaseResult, Skip, Verdict
from pytorch_to_triton.validate.cases import CasePlan, plan_cases
from pytorch_to_triton.validate.exchange import exchange_folder
from pytorch_to_triton.validate.judge import decide, next_step_of, summary_of
from pytorch_to_triton.validate.target import EXAMPLES_CASE, declaration_of, describe, examples_case
from pytorch_to_triton.validate.trial import Setting, Side, Trial

INTERPRETER_ELEMENTS = 2**21
"""Largest case under the interpreter: seconds, not minutes, of a kernel's time."""
DEVICE_ELEMENTS = 2**26
"""Largest case on a device: half a gigabyte of float64 truth an output."""
BATCH_ELEMENTS = 2**26
"""Cases are run in batches of so many elements, so that their tensors fit on disk."""


class Request(Value):
    """What to validate, and how."""

    candidate: Target
    reference: Target | None = None
    """None: the reference in the candidate's own file."""
    options: Options = NO_OPTIONS
    """Inputs, dims and requirements given beside the file; they win over it."""
    seed: int | None = None
    """None draws a fresh one, which the verdict names."""
    seconds: float = 120.0
    """How long one call of the reference or of the candidate may take, compilation included."""
    limit_elements: int | None = None
    """Elements of the largest case; None: what suits the mode."""


async def validate(door: Door, request: Request, mode: Mode, watch: Watch | None = None) -> Verdict:
    """Run the candidate on every planned case and compare it with the reference.

    The truth is the reference in float64; the candidate may err twice as much as PyTorch itself does at the
    case's dtype, and a little more. What the candidate does is in the verdict, be it a crash; a target or a
    declaration that cannot be used is refused: BadInput. Raises EnvironmentLacks where `mode` needs a device
    that is not there.
    """
    if not mode.interpreter and not (await versions(door, mode)).devices:
        raise EnvironmentLacks(
            "This machine has no GPU that torch can use.", "Validate under the interpreter."
        )
    target = request.reference or Target(path=request.candidate.path)
    reference = await describe(door, target, "reference", mode)
    candidate = await describe(door, request.candidate, "candidate", mode)
    limit = request.limit_elements or (INTERPRETER_ELEMENTS if mode.interpreter else DEVICE_ELEMENTS)
    plan = planned(reference, candidate, request.options, limit)
    seed = secrets.randbits(31) if request.seed is None else request.seed
    with exchange_folder() as folder:
        setting = Setting(door, mode, request.seconds, folder, seed, watch)
        trial = Trial(setting, Side("oracle", target, setting), Side("subject", request.candidate, setting))
        results = [result for batch in batches(plan.cases) for result in await trial.run(batch)]
    return verdict_of(request, results, plan, trial)


def planned(reference: Description, candidate: Description, options: Options, limit: int) -> CasePlan:
    """The declaration's cases; of a file with get_inputs() also the call that it draws itself.

    That call is then the declared one, and cases of the same shapes with other values are generated ones.
    """
    plan = plan_cases(declaration_of(reference, candidate, options), limit_elements=limit)
    own = examples_case(reference)
    if own is None or options.inputs:
        return plan
    elements = sum(elements_of(example) for example in reference.examples or ())
    if elements > limit:
        why = f"{elements:,} elements are over this run's limit of {limit:,}"
        return CasePlan(cases=plan.cases, skipped=(*plan.skipped, Skip(what=EXAMPLES_CASE, why=why)))
    generated = (
        case.model_copy(update={"group": "special"}) for case in plan.cases if case.group == "declared"
    )
    others = (case for case in plan.cases if case.group != "declared")
    return CasePlan(cases=(own, *generated, *others), skipped=plan.skipped)


def elements_of(example: Example) -> int:
    if example.form == "list":
        return sum(elements_of(item) for item in example.items)
    return math.prod(example.shape) if example.form == "tensor" else 0


def batches(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """The cases in their order, in lists that hold BATCH_ELEMENTS at most, and one case at least."""
    batch: list[Case] = []
    held = 0
    for case in cases:
        elements = sum(tensor.elements for tensor in tensors_in(case.arguments))
        if batch and held + elements > BATCH_ELEMENTS:
            yield batch
            batch, held = [], 0
        batch.append(case)
        held += elements
    if batch:
        yield batch


def verdict_of(request: Request, results: Sequence[CaseResult], plan: CasePlan, trial: Trial) -> Verdict:
    setting, decision = trial.setting, decide(results)
    interpreter = setting.mode.interpreter
    return Verdict(
        summary=summary_of(decision, results),
        next_step=next_step_of(decision, results),
        verdict=decision,
        candidate=str(request.candidate),
        reference=str(trial.reference.target),
        cases=tuple(results),
        skipped=plan.skipped,
        seed=setting.seed,
        device="CPU, Triton's interpreter" if interpreter else trial.reference.device,
        obtained="measured: every output compared with float64"
        + (
            ", under Triton's interpreter on CPU tensors"
            if interpreter
            else ", compiled kernels on the device"
        ),
    )
