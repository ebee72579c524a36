"""What a target is and declares: the worker describes it, and its inputs become one declaration."""

import importlib.util
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from pytorch_to_triton.errors import Refusal, TargetBroken, TargetNotFound
from pytorch_to_triton.inputs.case import Case
from pytorch_to_triton.inputs.comparison import parse_comparisons
from pytorch_to_triton.inputs.declaration import NO_OPTIONS, Declaration, Options, parse_declaration
from pytorch_to_triton.inputs.packed_input import CALL, nested
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.jobs.job_channel import Ended, JobChannel
from pytorch_to_triton.jobs.no_answer import is_full, refusal_of_end, refusal_of_exception
from pytorch_to_triton.schema.description import (
    ConstantExample,
    Description,
    Example,
    PackedExample,
    TensorExample,
)
from pytorch_to_triton.schema.job import Job, Outcome, Runtime
from pytorch_to_triton.schema.target import Role, Target
from pytorch_to_triton.targets.listed_inputs import with_lists_kept, with_values_listed
from pytorch_to_triton.targets.small_sizes import sizes_to_try
from pytorch_to_triton.worker.wire import Failure, tracing
from pytorch_to_triton.worker.wire.as_json import decoded
from pytorch_to_triton.worker.wire.tracing import FreeSizes

DESCRIBE_SECONDS = 120.0
"""Importing a file, and constructing its module, may take this long."""

HINTS = {
    "TargetMissing": "Check the path; a target is `path.py` or `path.py:name`.",
    "NameMissing": "Name a function or an nn.Module class of the file: `path.py:name`.",
    "ReferenceMissing": "Name the function: convert path.py:name; for a kernel --reference path.py:name.",
    "TargetSyntax": "Correct the file; `python -m py_compile FILE` shows the same error.",
    "ModuleUnconstructed": "Pass what the constructor needs: --init NAME=VALUE, once for each.",
    "TargetLoadFailed": "Import it with the same Python (--python names another), and correct what it says.",
    "TargetExits": 'Guard what ends the program with `if __name__ == "__main__":`.',
    "NotCallable": "Name a function or an nn.Module class of the file: `path.py:name`.",
    "ArityMismatch": (
        "Declare the parameters, name by name: --input 'x=float32[M,N]' --dim M=1,7,64 --dim N=1,33 for a "
        "tensor, --input eps=1e-5 for a number; or INPUTS and DIMS in the file. `convert --example "
        "FILE.py:NAME` takes them from a function that calls the target."
    ),
    "StateMismatch": "Give the candidate's parameters and buffers the names and shapes of the reference's.",
    "ExampleFailed": "Name a function that calls the target on arguments that it takes.",
    "ExamplesFailed": "Make it return one value for each parameter of the target.",
    "ComparisonUnusable": "Correct COMPARE or --compare: unordered(out[0], out[1], dim=-1) names results by "
    "their places in what is returned, with as many entries along the dim each.",
    "WorkUnusable": 'Write it as text over the dims: BYTES = "2 * M * N * itemsize".',
    "DeclarationUnusable": "Declare inputs as text: INPUTS = {'x': 'float32[M, N]'}.",
}
"""By the exceptions of worker/loading/target_file.py and worker/tracing/description.py."""
ABSENT = ("TargetMissing", "NameMissing", "ReferenceMissing")
EXAMPLES_CASE = "get_inputs()"
EXPORT = ("pytorch_to_triton_worker.exporting",)
"""What torch.export imports and makes at its first call: over a second."""
FREE_SIZES_SECONDS = 15.0
"""torch.export may follow free sizes through a deep network for minutes; numbers take it a second."""
GRADIENTS = (*EXPORT, "pytorch_to_triton_worker.exporting_gradients")
"""The same for a trace with gradients."""


@dataclass(frozen=True)
class TargetProcess:
    """A process that has loaded a target, once for all that is asked about it."""

    target: Target
    description: Description
    channel: JobChannel
    seconds: float
    """How long each answer may take."""

    async def answer(self, request: tracing.TargetRequest) -> tracing.TargetItem:
        """What the process finds out. Raises Ended."""
        arrived = await self.channel.ask(request, seconds=self.seconds)
        item: tracing.TargetItem = decoded(tracing.TargetItem, arrived)
        return item


@asynccontextmanager
async def open_target(
    worker: WorkerClient,
    target: Target,
    role: Role,
    runtime: Runtime,
    *,
    seconds: float = DESCRIBE_SECONDS,
    needs: tuple[str, ...] = (),
) -> AsyncIterator[TargetProcess]:
    """Load the target in the worker and say what it takes. Raises TargetNotFound or TargetBroken.

    `needs` are modules for what is to be asked of it: the worker imports them once for all its processes.
    """
    if role == "reference" and "get_inputs" in source_of(target):
        needs = EXPORT
    async with AsyncExitStack() as stack:

        async def loaded() -> TargetProcess:
            channel = await stack.enter_async_context(_channel(worker, target, role, runtime, needs))
            return TargetProcess(target, await _described(channel, target, seconds), channel, seconds)

        process = await loaded()
        if role == "reference" and process.description.examples and process.description.inputs is None:
            try:
                limited = replace(process, seconds=min(seconds, FREE_SIZES_SECONDS))
                answer = await limited.answer(tracing.FreeSizesRequest())
                assert isinstance(answer, tracing.FreeSizesItem)
                free = answer.free
            except Ended:  # the declared sizes are then all there are
                free, process = None, await loaded()
            description = process.description.model_copy(update={"free": free})
            process = replace(process, description=description)
        yield process


@asynccontextmanager
async def reopen_target(
    worker: WorkerClient, description: Description, runtime: Runtime, *, seconds: float
) -> AsyncIterator[TargetProcess]:
    """Load a reference again to trace it; what it takes is known."""
    target = description.target
    async with _channel(worker, target, "reference", runtime, EXPORT) as channel:
        await _described(channel, target, seconds)
        yield TargetProcess(target, description, channel, seconds)


def _channel(
    worker: WorkerClient, target: Target, role: Role, runtime: Runtime, needs: tuple[str, ...]
) -> AbstractAsyncContextManager[JobChannel]:
    job = Job(kind="describe", arguments={"target": target.as_json(), "role": role}, needs=needs)
    return worker.open_channel(job, runtime)


async def _described(channel: JobChannel, target: Target, seconds: float) -> Description:
    """What a process says first."""
    try:
        item: tracing.DescribedItem = decoded(tracing.DescribedItem, await channel.item(seconds=seconds))
    except Ended as end:
        raise refusal_of(end.outcome, target) from None
    return Description.model_validate(item.description)


async def describe(
    worker: WorkerClient, target: Target, role: Role, runtime: Runtime, *, seconds: float = DESCRIBE_SECONDS
) -> Description:
    """What `open_target` says of a target."""
    async with open_target(worker, target, role, runtime, seconds=seconds) as process:
        return process.description


def source_of(target: Target) -> str:
    """The text of its file; empty where that cannot be read as text, which loading it says."""
    try:
        return importlib.util.decode_source(target.path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ""


def refusal_of(outcome: Outcome, target: Target) -> Refusal:
    """Why a job could not use the target: mostly the caller's mistake, or a missing requirement."""
    return refusal_of_failure(outcome.failure) if outcome.failure else refusal_of_end(outcome, target)


def refusal_of_failure(failure: Failure) -> Refusal:
    """The same of an exception."""
    if failure.type not in HINTS or is_full(failure.message):
        return refusal_of_exception(failure)
    kind = TargetNotFound if failure.type in ABSENT else TargetBroken
    return kind(sentence(failure.message), HINTS[failure.type])


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "^")) else ".")


def declaration_of(
    reference: Description, candidate: Description, options: Options = NO_OPTIONS
) -> Declaration:
    """The inputs of both sides: the reference's file declares them, options win over it, name by name.

    A file with get_inputs() declares its examples' shapes; a reference without any declaration takes the
    candidate's. A module's parameters and buffers are no inputs. Raises BadDeclaration where something cannot
    be read, TargetBroken where it does not fit a signature.
    """
    source = with_small_sizes(declaring(reference, candidate))
    inputs = inputs_of(source, reference)
    taken = collected(reference, with_values_listed(reference, {**inputs, **options.inputs}))
    options = replace(options, inputs=taken if options.inputs else {})
    dims = {
        name: sizes for name, sizes in source.dims.items() if source.generates_inputs or used(name, taken)
    }
    declaration = parse_declaration(
        taken, dims if taken or source.generates_inputs else {}, source.requires, options
    )
    unordered = parse_comparisons(options.compare or source.compare)
    declaration = declaration.model_copy(update={"unordered": unordered})
    if source.free is not None and not (options.inputs or options.dims):
        declaration = declaration.model_copy(
            update={"generated": source.free.dims, "same_program": source.free.same_program}
        )
    if declaration.inputs or not source.generates_inputs:
        refuse_misfit(reference, declaration, state=())
        refuse_misfit(candidate, declaration, state=state_passed(reference, candidate))
    return declaration


def declaring(reference: Description, candidate: Description) -> Description:
    """The side whose file says what the inputs are."""
    declares = reference.inputs is not None or reference.examples is not None or reference.generates_inputs
    return reference if declares or candidate.inputs is None else candidate


def inputs_of(source: Description, reference: Description) -> dict[str, object]:
    """Inputs by name, in the values that a kernel file would hold.

    Left out: what the reference's module holds itself, and, where the target is one function of a file, what
    other functions take.
    """
    if source.generates_inputs:
        return {}
    if source.inputs is None:
        return with_lists_kept(reference, declared_examples(source.examples or (), source.free))
    state = {tensor.name for tensor in reference.state}
    known = {parameter.name for parameter in reference.parameters}
    one_of_many = reference.target.name is not None and not any(p.variadic for p in reference.parameters)
    kept = (name for name in source.inputs if name not in state and (name in known or not one_of_many))
    return {name: source.inputs[name] for name in kept}


def collected(reference: Description, inputs: Mapping[str, object]) -> dict[str, object]:
    """The inputs by the reference's own parameters, those that `*args` or `**kwargs` collects under its name.

    By position come first those of other names that the other parameters need. What is to collect nothing is
    declared empty, so that a kernel takes nothing there either.
    """
    variadic = [p for p in reference.parameters if p.variadic]
    plain = [p.name for p in reference.parameters if not p.variadic]
    marks = {p.name: f"{'**' if p.by_keyword else '*'}{CALL}" for p in variadic}
    known = {n: v for n, v in inputs.items() if n in plain}
    known |= {
        n: {marks[n]: v if isinstance(v, dict | list | tuple) else [v]}
        for n, v in inputs.items()
        if n in marks
    }
    others = {n: v for n, v in inputs.items() if n not in known}
    free = [p for p in variadic if p.name not in known] if inputs else []
    empty: dict[str, object] = {p.name: {marks[p.name]: {} if p.by_keyword else []} for p in free}
    if not free or not others:
        return {**known, **others, **empty}
    first = free[0]
    positional = [] if first.by_keyword else [p for p in reference.parameters if not p.by_keyword]
    missing = [p.name for p in positional if p.required and p.name not in known]
    needed = dict(zip(missing, others.values(), strict=False))
    rest = dict(list(others.items())[len(needed) :])
    return {**needed, **known, **empty, first.name: {marks[first.name]: rest}}


Bounds = Callable[[int, int, Mapping[int, str]], tuple[object, object]]
"""A tensor of integers as it is declared: by what it holds, and the dims that its shape has not, by size."""


def bounds_up_to_a_size(low: int, high: int, dims: Mapping[int, str]) -> tuple[object, object]:
    """Integers up to a size are indices along it."""
    return low, dims.get(high, high)


def declared_examples(
    examples: Sequence[Example], free: FreeSizes | None, bounds: Bounds = bounds_up_to_a_size
) -> dict[str, object]:
    """What a call showed, as a declaration of it, over the dims where sizes are free."""
    return nested(
        {e.name: e.packing if isinstance(e, PackedExample) else declared(e, free, bounds) for e in examples}
    )


def declared(
    example: TensorExample | ConstantExample, free: FreeSizes | None, bounds: Bounds = bounds_up_to_a_size
) -> object:
    """One tensor or constant of it."""
    if example.form == "constant":
        return f'"{example.value}"' if isinstance(example.value, str) else example.value
    shape = free.shapes[example.name] if free else tuple(map(str, example.shape))
    text = f"{example.dtype}[{', '.join(shape)}]"
    if example.low is None or example.high is None:
        return text
    dims = {size: name for name, size in free.dims.items() if name not in shape} if free else {}
    low, high = bounds(example.low, example.high, dims)
    return f"{text} in {low}..{high}"


def with_small_sizes(source: Description) -> Description:
    """The description with free sizes of get_inputs() as DIMS and REQUIRES, small ones beside the file's."""
    if source.free is None:
        return source
    requires = [*source.requires, *source.free.requires]
    return source.model_copy(update={"dims": sizes_to_try(source.free), "requires": requires})


def used(dim: str, inputs: Mapping[str, object]) -> bool:
    return any(dim in re.findall(r"\w+", str(value)) for value in inputs.values())


def state_passed(reference: Description, candidate: Description) -> tuple[str, ...]:
    """Names of the reference's state that a candidate function gets as keyword arguments."""
    if candidate.state:
        return ()
    taken = {parameter.name for parameter in candidate.parameters}
    return tuple(tensor.name for tensor in reference.state if tensor.saved or tensor.name in taken)


def refuse_misfit(side: Description, declaration: Declaration, state: tuple[str, ...]) -> None:
    """Raises TargetBroken where the declared inputs, and the state, do not fit the side's signature."""
    if any(parameter.variadic for parameter in side.parameters):
        return
    names = [parameter.name for parameter in side.parameters]
    required = [parameter.name for parameter in side.parameters if parameter.required]
    given = [*declaration.parameters(), *state]
    # What is packed for the reference, a kernel may take one by one.
    flat = [*(name for name in declaration.inputs if name not in declaration.packings()), *state]
    by_name = any(set(required) <= set(way) <= set(names) for way in (given, flat))
    # Other names are other words for the same arguments; a mixture of both is a mistake.
    by_position = not (state or set(given) & set(names)) and any(
        len(required) <= len(way) <= len(names) for way in (given, flat)
    )
    if not (by_name or by_position):
        raise TargetBroken(misfit(side, names, given), HINTS["ArityMismatch"])


def refuse_other_names(side: Description, declaration: Declaration) -> None:
    """Raises TargetBroken where inputs are declared under names of no parameter: a draft uses their names."""
    names = [parameter.name for parameter in side.parameters]
    given = list(declaration.parameters())
    if not (set(given) <= set(names) or any(parameter.variadic for parameter in side.parameters)):
        raise TargetBroken(misfit(side, names, given), HINTS["ArityMismatch"])


def misfit(side: Description, names: list[str], given: list[str]) -> str:
    unknown = [name for name in given if name not in names]
    absent = [p.name for p in side.parameters if p.required and p.name not in given]
    details = [f"not declared: {', '.join(absent)}"] * bool(absent)
    details += [f"not taken: {', '.join(unknown)}"] * bool(unknown)
    takes = ", ".join(names) or "nothing"
    inputs = f"the declared inputs are {', '.join(given)}" if given else "no inputs are declared"
    return f"{side.target}: `{side.name}` takes {takes}, but {inputs} ({'; '.join(details)})."


def examples_case(reference: Description) -> Case | None:
    """The call that the file's own get_inputs() makes; None where it has none."""
    if not reference.examples:
        return None
    return Case(name=EXAMPLES_CASE, group="declared", dims={}, arguments=())
