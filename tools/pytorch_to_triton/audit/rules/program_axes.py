"""Axes of grids and program ids that do not agree: those that no launch has, and those that nobody reads."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.programs import grid_of, is_opaque, is_wide, program_ids
from pytorch_to_triton.audit.analysis.ranges import calls_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, M, N, B: tl.constexpr):
    row = tl.program_id(axis=1)
    cols = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + row * N + cols, 0.0, mask=cols < N)
"""
BAD = (
    _KERNEL
    + """
def run(x):
    kernel[(triton.cdiv(x.shape[1], 64),)](x, *x.shape, B=64)
""",
)
GOOD = (
    _KERNEL
    + """
def run(x, axes):
    kernel[(4, *axes)](x, *x.shape, B=64)
""",
    """
@triton.jit
def kernel(x_ptr, AXES: tl.constexpr):
    if AXES == 2:
        tl.store(x_ptr + tl.program_id(1), 0.0)

def run(x):
    kernel[(1,)](x, AXES=1)
""",
)


_ROWS = """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + i, 0.0, mask=i < n)

def run(x):
    rows, n = x.shape
    kernel[(triton.cdiv(n, 64), rows)](x, n, B=64)
"""


@kernel_rule("critical", "correctness", BAD, GOOD)
def program_axis_outside_grid(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel takes its program id along an axis that the grid of its launch does not have.

    tl.program_id is 0 for every program along such an axis: the kernel computes the first part again and
    again, and never the rest.

    Fix: give the grid an element for each axis, or use an axis that it has.
    """
    launched = _launched(kernel)
    grids = [grid_of(launch) for one in launched for launch in one.launches]
    lengths = {len(grid) if grid else 3 for grid in grids}
    for call, axis in program_ids(kernel):
        if axis is not None and axis > 2:
            message = f"A grid has three axes at most, counted from 0: Triton refuses tl.program_id({axis})."
            yield Fault(call, message, "Use axis 0, 1 or 2, and take larger grids apart with // and %.")
            continue
        if axis is None or not lengths or axis < max(lengths) or kernel.flow.conditions(call):
            continue
        axes = "1 axis" if max(lengths) == 1 else f"{max(lengths)} axes"
        names = " and ".join(one.node.name for one in launched)
        yield Fault(
            call,
            f"The grid that {names} is launched with has {axes}, counted from 0: "
            f"tl.program_id({axis}) is 0 in every program.",
            f"Give the grid {axis + 1} elements, or use an axis below {max(lengths)}.",
        )


def _launched(kernel: SourceKernel) -> tuple[SourceKernel, ...]:
    """The kernel itself where it is launched, else its callers; none unless all of them surely launch it."""
    if kernel.launches:
        return (kernel,)
    callers = tuple(calls_of(kernel))
    if any(not found.kernel.launches or found.kernel.flow.conditions(call) for found, call in callers):
        return ()
    return tuple({found.kernel: None for found, _ in callers})


@kernel_rule("medium", "correctness", (_ROWS,), (_ROWS.replace("64), rows)", "64), 1)"),))
def unread_grid_axis(kernel: SourceKernel) -> Iterator[Fault]:
    """A grid has an axis along which the kernel never takes its program id.

    All programs along that axis do the same work and write the same places: time is lost, and what is
    updated in place or added to is wrong.

    Fix: read tl.program_id of that axis, or take it out of the grid.
    """
    read = [axis for _, axis in program_ids(kernel) if axis is not None]
    if is_opaque(kernel, *kernel.node.body):
        return
    for launch in kernel.launches:
        grid = grid_of(launch) or ()
        # Where it reads an axis that there is not, that is the fault.
        for axis, element in enumerate(grid if max(read, default=0) < len(grid) else ()):
            if axis not in read and is_wide(axis, launch):
                yield Fault(
                    element,
                    f"{kernel.node.name} never reads tl.program_id({axis}): all {ast.unparse(element)} "
                    "programs along this axis do the same work on the same places.",
                    f"Use tl.program_id({axis}) in the kernel, or make this element 1.",
                )
