"""A declaration for a target whose file makes its inputs by `inputs(**dims)`: from what that returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import TypeAdapter

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.trace_sizes import distinct_sizes
from pytorch_to_triton.inputs.declaration import Options
from pytorch_to_triton.inputs.expression import value_of
from pytorch_to_triton.inputs.packed_input import nested
from pytorch_to_triton.inputs.sizes import Point
from pytorch_to_triton.schema.description import Example, PackedExample, TensorExample
from pytorch_to_triton.targets.describe import TargetProcess, declared
from pytorch_to_triton.targets.listed_inputs import with_lists_kept
from pytorch_to_triton.targets.problem import Problem, problem_of
from pytorch_to_triton.worker.wire import tracing

EXAMPLES = TypeAdapter(tuple[Example, ...])
SHIFTS = range(-8, 9)
FACTORS = range(2, 17)


async def with_shown_inputs(process: TargetProcess, problem: Problem, options: Options) -> Problem:
    """The problem with its inputs declared, as `inputs(**dims)` returns them at two points.

    Raises NotConvertible where a size follows from the dims in no plain way.
    """
    dims, requires = problem.declaration.dims, problem.declaration.requires
    first = distinct_sizes(tuple(dims), requires, ())
    second = first and distinct_sizes(tuple(dims), requires, tuple(first.values()))
    if first is None or second is None:
        raise NotConvertible(
            f"No sizes differ from dim to dim and meet {', '.join(requires)}: what `inputs` returns does not "
            "show which is which.",
            'Declare the inputs: INPUTS = {"x": "float32[M, N]"}.',
        )
    answer = await process.answer(tracing.ShownInputsRequest(points=(first, second)))
    assert isinstance(answer, tracing.ShownInputsItem)
    shown = [EXAMPLES.validate_python(examples) for examples in answer.examples]
    inputs = with_lists_kept(problem.reference, nested(dict(declarations(shown, (first, second)))))
    description = problem.reference.model_copy(update={"inputs": inputs, "generates_inputs": False})
    return problem_of(description, description, options)


def declarations(shown: Sequence[Sequence[Example]], points: Sequence[Point]) -> Iterator[tuple[str, object]]:
    """Each input as it is declared, or how it is packed."""
    for alike in zip(*shown, strict=True):
        first = alike[0]
        if isinstance(first, PackedExample):
            yield first.name, first.packing
        elif isinstance(first, TensorExample):
            yield first.name, tensor([e for e in alike if isinstance(e, TensorExample)], points)
        else:
            yield first.name, declared(first, None)


def tensor(alike: Sequence[TensorExample], points: Sequence[Point]) -> str:
    """A tensor over the dims. Raises NotConvertible."""
    first = alike[0]
    shape = [size(first.name, seen, points) for seen in zip(*(e.shape for e in alike), strict=True)]
    ends = [e.high for e in alike]
    values = f" in {first.low}..{size_text(ends, points) or first.high}" if first.low is not None else ""
    return f"{first.dtype}[{', '.join(shape)}]{values}"


def size(name: str, seen: Sequence[int], points: Sequence[Point]) -> str:
    """A size of a tensor over the dims. Raises NotConvertible."""
    if text := size_text(seen, points):
        return text
    where = "; ".join(
        f"{count} at {', '.join(f'{dim}={n}' for dim, n in point.items())}"
        for count, point in zip(seen, points, strict=True)
    )
    raise NotConvertible(
        f"A size of {name} follows from the dims of `inputs` in no plain way: {where}.",
        f'Declare the inputs: INPUTS = {{"{name}": "float32[M, 2*N]"}}, sizes as expressions of the dims.',
    )


def size_text(seen: Sequence[int | None], points: Sequence[Point]) -> str | None:
    """The plainest expression that is these numbers at these points; None where there is none."""
    texts = (text for text in candidates(tuple(points[0]), seen[0]))
    return next((t for t in texts if [value_of(t, p) for p in points] == list(seen)), None)


def candidates(dims: Sequence[str], first: int | None) -> Iterator[str]:
    """A number, a dim, and what one or two dims make."""
    yield from [] if first is None else [str(first)]
    yield from dims
    yield from (f"{k}*{dim}" for dim in dims for k in FACTORS)
    yield from (f"{dim} {'+' if k > 0 else '-'} {abs(k)}" for dim in dims for k in SHIFTS if k)
    yield from (f"{dim} // {k}" for dim in dims for k in FACTORS)
    yield from (f"{a}{sign}{b}" for a in dims for b in dims for sign in ("*", " + ") if a <= b)
