"""Cases of other memory layouts: each tensor by itself, all of them, and offsets that need 64 bits."""

import contextlib
import math
from collections.abc import Iterator, Sequence

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.case import LARGE_OFFSET, Layout
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.expression import names_in
from pytorch_to_triton.inputs.sizes import Point, largest_point, middle_point, smallest_point
from pytorch_to_triton.validate.host_code import MOST_SWITCHES, Switch, ways_taken
from pytorch_to_triton.validate.plan import NO_CHANGE, Change, PlanBuilder

_ROWS_APART = 3
"""From three rows on, a large stride fits 32 bits and the offset does not."""
_LAYOUTS: tuple[Layout, ...] = ("transposed", "expanded", "sliced", "offset")


def add_layouts(plan: PlanBuilder, base: Point) -> None:
    """Each tensor of one dimension or more in each memory layout; a vector has no transpose."""
    tensors = plan.declaration.tensors()
    if not plan.declaration.inputs:
        plan.leave_out("layouts and special values", "the target generates its own inputs")
    for name, tensor in tensors.items():
        for layout in _LAYOUTS[2 * (len(tensor.shape) < 2) :] if tensor.shape else ():
            plan.add("layout", base, Change(f"{name} {layout}", layouts={name: layout}))


def add_all_strided(plan: PlanBuilder, base: Point, point: Point, further: Sequence[Change]) -> None:
    """No tensor contiguous, at a point with odd sizes; the same in each further dtype."""
    layouts = _all_strided(plan.declaration)
    for change in (NO_CHANGE, *further) if layouts else ():
        # One tensor at the base alone is a case of its own already.
        if change.label or len(layouts) > 1 or point != base:
            label = f"{change.label} all strided".strip()
            plan.add("layout", point, Change(label, dtypes=change.dtypes, layouts=layouts))


def _all_strided(declaration: Declaration) -> dict[str, Layout]:
    """Matrices by columns, vectors with gaps."""
    tensors = declaration.tensors().items()
    return {
        name: "transposed" if len(tensor.shape) > 1 else "sliced" for name, tensor in tensors if tensor.shape
    }


def add_strided_past(plan: PlanBuilder, switches: Sequence[Switch]) -> None:
    """No tensor contiguous where the candidate takes another way: the smallest case past each such size.

    Of long rows alone: many rows take no other strides, and the interpreter minutes.
    """
    layouts = _all_strided(plan.declaration)
    rows = _row_dims(plan.declaration)
    ways = [(size, name) for size, name in ways_taken(switches) if name in rows]
    for size, name in ways[:MOST_SWITCHES]:
        past = [case for case in plan.cases.values() if case.dims[name] > size and case.elements]
        if past:
            smallest = min(past, key=lambda case: case.elements)
            plan.add("layout", smallest.dims, Change("all strided", layouts=layouts))


def _row_dims(declaration: Declaration) -> frozenset[str]:
    """The dimensions that the last size of a tensor of the most dimensions names."""
    shapes = [tensor.shape for tensor in declaration.tensors().values() if tensor.shape]
    most = max(map(len, shapes), default=0)
    return frozenset[str]().union(*(names_in(shape[-1]) for shape in shapes if len(shape) == most))


def add_large_strides(plan: PlanBuilder, base: Point) -> None:
    """Each tensor at offsets past 2^31 elements, one at a time, at the smallest sizes that leave it rows."""
    dims = plan.declaration.dims
    few = {
        name: min((size for size in sizes if size >= _ROWS_APART), default=base[name])
        for name, sizes in dims.items()
    }
    point = few if plan.problem(few) is None else base
    for name in plan.declaration.tensors():
        declared = _largest_elements(plan.declaration, name) > LARGE_OFFSET
        change = Change(f"{name} rows far apart", layouts={name: "large_stride"}, declared=declared)
        plan.know("large_stride", change)
        if why := plan.problem(point, change):
            plan.leave_out(f"offsets beyond 2^31 elements in {name}", why)
        else:
            plan.add("large_stride", point, change)


def _largest_elements(declaration: Declaration, name: str) -> int:
    """How many elements the tensor has at the largest of its declared sizes."""
    found = [0]
    for point in _declared_points(declaration):
        with contextlib.suppress(BadDeclaration):
            found.append(math.prod(declaration.shape_of(name, point)))
    return max(found)


def _declared_points(declaration: Declaration) -> Iterator[Point]:
    """The points that the declared cases want, however large, where requirements allow them."""
    dims = declaration.dims
    middle = middle_point(dims)
    singles = ({**middle, name: size} for name, sizes in dims.items() for size in sizes)
    points = (middle, *singles, smallest_point(dims), largest_point(dims))
    return (point for point in points if not declaration.violated(point))
