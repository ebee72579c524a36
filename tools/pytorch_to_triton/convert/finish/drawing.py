"""How the finished tests and the benchmark draw a call's arguments, and at which sizes and dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod

from pytorch_to_triton.convert.finish.recipe import Operand, Recipe
from pytorch_to_triton.graph.cost import held_bytes, largest_value_bytes
from pytorch_to_triton.graph.dtype_rules import FLOATS
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.input_spec import SizeSpec, TensorSpec, default_range
from pytorch_to_triton.inputs.sizes import Point, largest_point, middle_point, nearby, smallest_point
from pytorch_to_triton.inputs.timing_dims import timing_dims
from pytorch_to_triton.schema.dtype import ITEM_BYTES
from pytorch_to_triton.validate.host_code import switches_in

MOST_BYTES = 2**19
"""Of one value in a test: more would keep the interpreter busy for minutes."""
MOST_SIZES = 8
POINTS_TRIED = 2000
MOST_SWITCHES = 4
STEPS = (1, 16, 128)
"""Past a size at which `run` takes another way: round ones for sizes that must be multiples."""
TIMED_BYTES = (2**20, 2**24, 2**28)
"""Inputs of a benchmark, or its largest value, hold at least these: a small, an ordinary and a large size."""


def lines(recipe: Recipe) -> list[str]:
    """The body of `arguments(sizes, dtypes, values=...)`, for which `normal`, `uniform` and `integers` are
    there."""
    specs = {o.name: o.spec for o in recipe.operands if isinstance(o.spec, TensorSpec | SizeSpec)}
    dims = sorted(frozenset().union(*(spec.names() for spec in specs.values())))
    local = {dim: dim if dim not in ("sizes", "dtypes", "values", "device") else f"{dim}_" for dim in dims}
    drawn = recipe.assembled(
        {n: tensor(spec, n) if isinstance(spec, TensorSpec) else spec.size for n, spec in specs.items()}
        | {o.name: f'values["{o.name}"]' for o in recipe.operands if o.listed}
    )
    return [
        *(f'{local[dim]} = sizes["{dim}"]' for dim in dims),
        "return {",
        *(f'    "{name}": {drawn[name]},' for name in recipe.arguments if name in recipe.inputs),
        "}",
    ]


def tensor(spec: TensorSpec, name: str) -> str:
    """A tensor of random values in its declared range."""
    dtype, shape = f'dtypes["{name}"]', "".join(f", {size}" for size in spec.shape)
    first = spec.dtypes[0]
    if first in FLOATS or first.startswith("complex"):
        if spec.low is None:
            return f"normal({dtype}{shape})"
        return f"uniform({dtype}, {spec.low}, {spec.high}{shape})"
    low, high = (0, 2) if first == "bool" else default_range(first)
    outside = "" if spec.outside is None else f", outside={spec.outside}"
    return f"integers({dtype}, {spec.low or low}, {spec.high or high}{shape}{outside})"


def mixtures(recipe: Recipe) -> list[str]:
    """Dtypes by tensor as source: the first declared one of each, the second one of each, and so on."""
    count = max((len(tensor.shaped.dtypes) for tensor in recipe.tensors), default=1)
    return [mixture(recipe.tensors, index) for index in range(count)]


def mixture(tensors: tuple[Operand, ...], index: int) -> str:
    dtypes = {
        tensor.name: tensor.shaped.dtypes[min(index, len(tensor.shaped.dtypes) - 1)] for tensor in tensors
    }
    return "{" + ", ".join(f'"{name}": torch.{dtype}' for name, dtype in dtypes.items()) + "}"


def another_dtype(recipe: Recipe) -> str | None:
    """A floating-point dtype that no tensor is declared with; None where there is none to change."""
    declared = {dtype for tensor in recipe.tensors for dtype in tensor.shaped.dtypes}
    if declared.isdisjoint(FLOATS) or "float64" in declared:
        return None
    return "torch.float64"


def tested_sizes(recipe: Recipe) -> list[Point]:
    """Sizes for a test: the smallest, the largest, the middle, each dim's declared ones from there, and the
    first past each size at which `run` takes another way."""
    declaration, dims = recipe.declaration, recipe.declaration.dims
    if not dims:
        return [{}]
    small = {name: tuple(s for s in sizes if s > 0) or sizes for name, sizes in dims.items()}
    around = nearby(middle_point(small), small)
    points = [smallest_point(small), middle_point(small), largest_point(small), *islice(around, POINTS_TRIED)]
    chosen: list[Point] = []
    for point in points:
        drawable = point not in chosen and declaration.takes(point)
        if drawable and largest_tensor_bytes(recipe, point) <= MOST_BYTES:
            chosen.append(point)
        if len(chosen) == MOST_SIZES:
            break
    chosen = chosen or [next((p for p in points if declaration.takes(p)), points[0])]
    return [*chosen, *islice(past_switches(recipe, declaration, smallest_point(small)), MOST_SWITCHES)]


def past_switches(recipe: Recipe, declaration: Declaration, small: Point) -> Iterator[Point]:
    """A point past each size at which `run` takes another way, where a test has time for it."""
    for size, name in switches_in(recipe.text, declaration):
        if size < max(declaration.dims[name]):
            continue
        points = ({**small, name: size + step} for step in STEPS)
        fitting = (
            p for p in points if declaration.takes(p) and largest_tensor_bytes(recipe, p) <= MOST_BYTES
        )
        yield from islice(fitting, 1)


def timed_sizes(recipe: Recipe) -> list[Point]:
    """Sizes for the benchmark: those that matter, else the largest declared ones enlarged."""
    if recipe.points or not recipe.declaration.dims:
        return [*recipe.points] or [{}]
    largest = held_bytes(recipe.graph)
    points = [timing_dims(recipe.declaration, at_least_bytes=count, held=largest) for count in TIMED_BYTES]
    return [point for i, point in enumerate(points) if point not in points[:i]]


def largest_tensor_bytes(recipe: Recipe, point: Mapping[str, int]) -> int:
    """Bytes of the largest value; of the largest input where nothing was traced."""
    if recipe.graph is not None:
        return largest_value_bytes(recipe.graph, point)
    tensors = (tensor.shaped for tensor in recipe.tensors)
    return max((prod(t.shape_at(point)) * ITEM_BYTES[t.dtypes[0]] for t in tensors), default=0)
