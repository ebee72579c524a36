"""Inputs taken from a call: what a function of the user's hands to the target, as a declaration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from pytorch_to_triton.errors import BadInput
from pytorch_to_triton.inputs.declaration import parse_declaration
from pytorch_to_triton.inputs.sizes import Point, largest_point
from pytorch_to_triton.jobs.client import WorkerClient
from pytorch_to_triton.schema.description import ConstantExample, Example, TensorExample
from pytorch_to_triton.schema.job import Job, Runtime
from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.targets.describe import declared_examples, refusal_of
from pytorch_to_triton.targets.first_call import called, case_at
from pytorch_to_triton.targets.small_sizes import sizes_to_try
from pytorch_to_triton.worker.wire.tracing import FreeSizes

NAMES = ("M", "N", "K", "L", "P", "Q", "R", "S", "T", "U", "V", "W")
BATCH = "B"
"""The first dimension of a tensor of three or more."""
IGNORED = (-1, -100)
"""Values that stand for no index: PyTorch's losses pass over -100."""
MOST_POINTS = 4
"""Sizes of calls at which a kernel is tuned and timed."""
MOST_ELEMENTS = 2**28
"""Of a call that tries another size: as large as the example's own may be."""


class RecordedCall(Value):
    """One call of the target."""

    arguments: tuple[Example, ...]
    constructor: dict[str, JsonValue]
    """Of a module; a value that is no constant is a list with its type's name."""
    training: bool = False
    """Of a module: whether it was in training mode."""


@dataclass(frozen=True)
class Proposal:
    """A declaration that the calls suggest, in the values of INPUTS and DIMS, and what is a guess in it."""

    inputs: Mapping[str, object]
    dims: Mapping[str, tuple[int, ...]]
    init: tuple[str, ...]
    guesses: tuple[str, ...]
    points: tuple[Point, ...] = ()
    """The sizes of the calls on tensors that are not empty, the most frequent first."""


async def proposed(
    worker: WorkerClient, target: Target, example: Target, runtime: Runtime, *, seconds: float
) -> Proposal:
    """Run the example, and propose a declaration under which the target runs, too.

    Raises BadInput where the example does not call the target, or raises before it does.
    """
    job = Job(kind="record_calls", arguments={"target": target.as_json(), "example": example.as_json()})
    outcome = await worker.ask(job, runtime, seconds=seconds)
    if outcome.answer is None:
        raise refusal_of(outcome, example)
    calls = tuple(RecordedCall.model_validate(call) for call in outcome.answer["calls"])
    if not calls:
        raise BadInput(
            f"{example} does not call {target}.", "Name a function that calls it, as --example FILE.py:NAME."
        )
    refuse_objects(target, calls[0])
    kept = alike(calls)
    first = proposal_of(kept)
    fixed = await fixed_sizes(worker, target.constructed_with(first.init), first, runtime, seconds=seconds)
    proposal = proposal_of(kept, fixed)
    return replace(proposal, guesses=(taken(len(kept), len(calls)), *proposal.guesses))


def taken(kept: int, calls: int) -> str:
    """How many calls the inputs are taken from, and how many are left out."""
    count = f"{kept} call{'s' if kept > 1 else ''}"
    left = calls - kept
    others = f"; {left} with other constants or other tensors {'is' if left == 1 else 'are'} left out"
    return f"Taken from {count}{others if left else ''}."


def refuse_objects(target: Target, call: RecordedCall) -> None:
    """Raises BadInput where a module was constructed with what --init cannot say."""
    objects = [
        f"{name} (a {value[0]})" for name, value in call.constructor.items() if isinstance(value, list)
    ]
    if objects and not target.init:
        raise BadInput(
            f"The example constructs {target.name} with {', '.join(objects)}, which is no constant.",
            "Name a class that takes constants, such as a subclass that makes the object itself.",
        )


async def fixed_sizes(
    worker: WorkerClient, target: Target, proposal: Proposal, runtime: Runtime, *, seconds: float
) -> frozenset[str]:
    """The dims that the target does not leave free: alone at another size, it does not run.

    Those that are free stay small for the others' turn, so that calls get smaller from one to the next.
    """
    declaration = parse_declaration(proposal.inputs, proposal.dims)
    point = largest_point(declaration.dims)
    found: set[str] = set()
    as_it_was = case_at(declaration, point, most_elements=MOST_ELEMENTS)
    if as_it_was and (await called(worker, target, as_it_was, runtime, seconds=seconds)).answer is None:
        return frozenset(found)  # random values are what it does not take: no size says anything
    for name, sizes in declaration.dims.items():
        others = {**point, name: max(1, point[name] - 1)}, {**point, name: min(sizes)}
        cases = [case_at(declaration, other, most_elements=MOST_ELEMENTS) for other in others]
        outcomes = [await called(worker, target, c, runtime, seconds=seconds) for c in cases if c]
        if outcomes and all(outcome.answer is not None for outcome in outcomes):
            point[name] = min(sizes)
        else:
            found.add(name)
    return frozenset(found)


def proposal_of(calls: Sequence[RecordedCall], fixed: frozenset[str] = frozenset()) -> Proposal:
    """Sizes that are alike in every call are one dim, but for those named in `fixed`, and for 1.

    Of several calls, only the sizes that differ are dims.
    """
    tensors = tensors_of(calls)
    names = named(tensors, vary=differ(tensors))
    sizes = {name: seen for seen, name in names.items()}
    kept = {name: seen for name, seen in sizes.items() if name not in fixed}
    shapes = {
        tensor: tuple(size_text(seen, names, kept) for seen in zip(*shapes, strict=True))
        for tensor, shapes in tensors.items()
    }
    free = FreeSizes(shapes=shapes, dims={name: max(seen) for name, seen in kept.items()}, requires=())
    in_first = replace(free, dims={name: seen[0] for name, seen in kept.items()})
    inputs = declared_examples(calls[0].arguments, in_first, bounds_below_a_size)
    tried = {name: tuple(sorted({*found, *kept[name]})) for name, found in sizes_to_try(free).items()}
    made = calls[0].constructor
    together = Counter(sizes for sizes in zip(*kept.values(), strict=True) if all(sizes))
    constants = {name: value for name, value in made.items() if not isinstance(value, list)}
    return Proposal(
        inputs=inputs,
        dims=tried,
        init=tuple(f"{name}={value}" for name, value in constants.items()),
        guesses=tuple(guesses(calls, sizes, fixed, inputs)),
        points=tuple(dict(zip(kept, sizes, strict=True)) for sizes, _ in together.most_common(MOST_POINTS)),
    )


def alike(calls: Sequence[RecordedCall]) -> tuple[RecordedCall, ...]:
    """The calls that pass the first one's constants, but for floats, and tensors of its ranks.

    Sizes of the others may go with their constants alone: channels with the groups of a convolution.
    """
    return tuple(call for call in calls if program_of(call) == program_of(calls[0]))


def program_of(call: RecordedCall) -> tuple[object, ...]:
    """What it passes but for floats, and for the sizes and values of tensors."""
    ranks = {name: len(shape) for name, shape in shapes_in(call).items()}
    held = [e for e in call.arguments if isinstance(e, ConstantExample)]
    constants = {e.name: "a float" if isinstance(e.value, float) else repr(e.value) for e in held}
    return ranks, constants, call.constructor


def tensors_of(calls: Sequence[RecordedCall]) -> dict[str, list[tuple[int, ...]]]:
    """The shape of every tensor in each call."""
    return {name: [shapes_in(call)[name] for call in calls] for name in shapes_in(calls[0])}


def shapes_in(call: RecordedCall) -> dict[str, tuple[int, ...]]:
    return {e.name: e.shape for e in call.arguments if isinstance(e, TensorExample)}


def differ(tensors: Mapping[str, list[tuple[int, ...]]]) -> bool:
    """Whether the calls differ in any size."""
    return any(len(set(shapes)) > 1 for shapes in tensors.values())


def named(tensors: Mapping[str, list[tuple[int, ...]]], *, vary: bool) -> dict[tuple[int, ...], str]:
    """A name for the sizes of each dim, in all calls; `vary`: only for those that differ."""
    found: dict[tuple[int, ...], str] = {}
    free = iter(NAMES)
    for shapes in tensors.values():
        for axis, seen in enumerate(zip(*shapes, strict=True)):
            if seen in found or set(seen) <= {0, 1} or (vary and len(set(seen)) == 1):
                continue
            is_batch = axis == 0 and len(shapes[0]) > 2 and BATCH not in found.values()
            name = BATCH if is_batch else next(free, None)
            if name is not None:
                found[seen] = name
    return found


def size_text(seen: tuple[int, ...], names: Mapping[tuple[int, ...], str], kept: Collection[str]) -> str:
    name = names.get(seen)
    return name if name and name in kept else str(seen[0])


def bounds_below_a_size(low: int, high: int, dims: Mapping[int, str]) -> tuple[object, object]:
    """Integers that stay below a size are indices along it: of the smallest such size, for one."""
    is_index = low >= 0 or low in IGNORED
    along = min((size for size in dims if size >= high and is_index), default=None)
    return (low, high) if along is None else (0, dims[along])


def guesses(
    calls: Sequence[RecordedCall],
    sizes: Mapping[str, tuple[int, ...]],
    fixed: frozenset[str],
    inputs: Mapping[str, object],
) -> list[str]:
    """What the calls alone do not say."""
    found: list[str] = []
    together = {name: seen for name, seen in sizes.items() if name not in fixed}
    if together:
        places = places_of(tensors_of(calls))
        text = "; ".join(
            f"{name} is {', '.join(map(str, sorted(set(seen))))} of {', '.join(places[seen])}"
            for name, seen in together.items()
        )
        found.append(
            f"Guessed: sizes that are equal are one dim. {text}. Others in the example keep them apart."
        )
    if fixed:
        numbers = ", ".join(str(sizes[name][0]) for name in sorted(fixed))
        found.append(f"Fixed, as the target does not run at other sizes: {numbers}.")
    ranges = [f"{name}: {text}" for name, text in inputs.items() if isinstance(text, str) and " in " in text]
    if ranges:
        found.append(f"Guessed from the values: {'; '.join(ranges)}.")
    if calls[0].training:
        found.append("Not taken over: the module was in training mode, and is converted in evaluation.")
    return found


def places_of(tensors: Mapping[str, list[tuple[int, ...]]]) -> dict[tuple[int, ...], list[str]]:
    """Where each size stands: `x.shape[0]`."""
    found: dict[tuple[int, ...], list[str]] = {}
    for name, shapes in tensors.items():
        for axis, seen in enumerate(zip(*shapes, strict=True)):
            found.setdefault(seen, []).append(f"{name}.shape[{axis}]")
    return found
