"""From a target to its graph: at which sizes it is traced, and what the trace's failures mean."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice, product

from pydantic import JsonValue

from pytorch_to_triton.errors import NotConvertible, Refusal
from pytorch_to_triton.gpu.door import Door
from pytorch_to_triton.gpu.target import refusal_of
from pytorch_to_triton.graph.operators import KEPT
from pytorch_to_triton.schema.declaration import Declaration
from pytorch_to_triton.schema.graph import Graph
from pytorch_to_triton.schema.input_spec import ConstantSpec, ListSpec, TensorSpec
from pytorch_to_triton.schema.job import Job, Mode, Outcome
from pytorch_to_triton.schema.target import Target

TRACE_SECONDS = 300.0
NEEDS = ("torch.export._trace",)
"""What torch.export.export imports at its first call: over a second."""
PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43)
POINTS_TRIED = 20_000
WIDEST_FIRST = ("float64", "float32", "bfloat16", "float16")

HINTS = {
    "TraceFailed": "torch.export has to see the whole computation: no data-dependent control flow, no "
    "conversion to Python numbers.",
    "MutatesArguments": "Return the new value instead of writing to the argument.",
    "NotRepresentable": "Pass the tensor as an argument.",
}


@dataclass(frozen=True)
class Traced:
    """A graph with what only several traces can tell."""

    graph: Graph
    output_dtypes: dict[str, str]
    """Output path -> dtype as source: `x.dtype` where it follows an input, else `torch.float32`."""


async def trace(
    door: Door, target: Target, declaration: Declaration, mode: Mode, *, seconds: float = TRACE_SECONDS
) -> Traced:
    """Trace the target in the widest dtypes it claims, and again in the others to see which outputs follow.

    Raises NotConvertible where torch.export cannot follow it, TargetBroken where it does not run.
    """
    tensors = tensor_inputs(declaration)
    dims = trace_dims(declaration)
    widest = {name: min(spec.dtypes, key=_width) for name, spec in tensors.items()}
    ask = partial(door.ask, mode=mode, seconds=seconds)
    graph = await _trace(ask, target, declaration, dims, widest)
    narrowest = {name: max(spec.dtypes, key=_width) for name, spec in tensors.items()}
    other = graph if narrowest == widest else await _trace(ask, target, declaration, dims, narrowest)
    return Traced(graph, output_dtypes(graph, other))


def _width(dtype: str) -> int:
    return WIDEST_FIRST.index(dtype) if dtype in WIDEST_FIRST else len(WIDEST_FIRST)


def tensor_inputs(declaration: Declaration) -> dict[str, TensorSpec]:
    """The declared tensors; a list of tensors is refused."""
    for name, spec in declaration.inputs.items():
        if isinstance(spec, ListSpec):
            raise NotConvertible(f"{name} is a list of tensors.", "Pass the tensors one by one.")
    return {n: s for n, s in declaration.inputs.items() if isinstance(s, TensorSpec)}


def trace_dims(declaration: Declaration) -> dict[str, int]:
    """Distinct sizes of at least 11 that meet all requirements; equal sizes would make dims look alike."""
    names = tuple(declaration.dims)
    fixed = {int(e) for s in tensor_inputs(declaration).values() for e in s.shape if e.isdigit()}
    for point in islice(_points(len(names)), POINTS_TRIED):
        dims = dict(zip(names, point, strict=True))
        if len(set(point)) == len(point) and not set(point) & fixed and declaration.violated(dims) is None:
            return dims
    raise NotConvertible(
        "No distinct sizes were found that meet all requirements, which the trace needs to tell dims apart.",
        "Loosen REQUIRES for the conversion, e.g. leave out equalities between dims.",
    )


def _points(count: int) -> Iterator[tuple[int, ...]]:
    for factor in (1, 2, 4, 8, 16, 32, 64, 128):
        yield from product(*(tuple(p * factor for p in PRIMES[i:] + PRIMES[:i])[:6] for i in range(count)))
    yield from product(*(tuple(p * f for f in (16, 32, 64, 1) for p in PRIMES[:5]) for _ in range(count)))


async def _trace(
    ask: Callable[[Job], Awaitable[Outcome]],
    target: Target,
    declaration: Declaration,
    dims: Mapping[str, int],
    dtypes: Mapping[str, str],
) -> Graph:
    inputs: list[JsonValue] = [
        {
            "name": name,
            "dtype": dtypes[name],
            "shape": list(spec.shape),
            "traced": list(spec.shape_at(dims)),
        }
        for name, spec in tensor_inputs(declaration).items()
    ]
    constants: dict[str, JsonValue] = {
        n: _plain(s.value) for n, s in declaration.inputs.items() if isinstance(s, ConstantSpec)
    }
    arguments: dict[str, JsonValue] = {
        "target": target.model_dump(mode="json"),
        "inputs": inputs,
        "constants": constants,
        "dims": dict(dims),
        "keep": list(KEPT),
    }
    outcome = await ask(Job(kind="trace", arguments=arguments, needs=NEEDS))
    if outcome.answer is None:
        raise _refusal(outcome, target)
    return Graph.model_validate(outcome.answer)


def _plain(value: object) -> JsonValue:
    return list(value) if isinstance(value, tuple) else value  # type: ignore[return-value]


def _refusal(outcome: Outcome, target: Target) -> Refusal:
    failure = outcome.failure
    if failure is not None and failure.type in HINTS:
        return NotConvertible(f"{target} cannot be traced: {failure.message}", HINTS[failure.type])
    return refusal_of(outcome, target)


def output_dtypes(graph: Graph, other: Graph) -> dict[str, str]:
    """Each output's dtype as source, from two traces with different input dtypes."""
    result = {}
    for output, twin in zip(graph.outputs, other.outputs, strict=True):
        here, there = _dtype(graph, output.name), _dtype(other, twin.name)
        source = next(
            (
                a.name
                for a, b in zip(graph.inputs, other.inputs, strict=True)
                if a.dtype == here and b.dtype == there
            ),
            None,
        )
        if source is None and here != there:
            raise NotConvertible(
                f"{output.path} is {here} or {there}, which no input's dtype explains.",
                "Claim one dtype for each input and convert once for each.",
            )
        result[output.path] = f"{source}.dtype" if source else f"torch.{here}"
    return result


def _dtype(graph: Graph, name: str) -> str:
    tensors = {i.name: i.dtype for i in graph.inputs} | {n.name: n.dtype for n in graph.nodes if n.dtype}
    return tensors[name]
