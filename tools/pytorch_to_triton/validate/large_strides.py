"""Cases of offsets that need 64 bits: rows of a tensor so far apart that 32 do not hold them."""

import contextlib
import math
from collections.abc import Iterator

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.case import LARGE_OFFSET
from pytorch_to_triton.inputs.declaration import Declaration
from pytorch_to_triton.inputs.sizes import Point, largest_point, middle_point, smallest_point
from pytorch_to_triton.validate.plan import Change, PlanBuilder

_ROWS_APART = 3
"""From three rows on, a large stride fits 32 bits and the offset does not."""


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
