"""Elements of grids that are not known to be 1, where the kernel reads its program ids itself."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.programs import grid_of, is_opaque, is_wide
from pytorch_to_triton.audit.call_arguments import argument, literal_integer
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_kernel = example("""
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, 0.0, mask=i < n)

def run(x):
""")
BAD = (
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + i, 0.0, mask=i < n)

def run(x):
    rows, n = x.shape
    kernel[(triton.cdiv(n, 64), rows)](x, n, B=64)
""",
)
GOOD = (_kernel("n = x.numel()", "B = triton.next_power_of_2(n)", "kernel[(triton.cdiv(n, B),)](x, n, B=B)"),)


@kernel_rule("medium", "correctness", BAD, GOOD)
def unread_grid_axis(kernel: SourceKernel) -> Iterator[Fault]:
    """A grid has an axis along which the kernel never takes its program id.

    All programs along that axis do the same work and write the same places: time is lost, and what is
    updated in place or added to is wrong.

    Fix: read tl.program_id of that axis, or take it out of the grid.
    """
    if not kernel.launches:
        return
    calls = [call for path, call in kernel.calls() if path == "triton.language.program_id"]
    read = {literal_integer(argument(call, 0, "axis")) for call in calls}
    unread = [
        (axis, element)
        for launch in kernel.launches
        for axis, element in enumerate(grid_of(launch) or ())
        if axis not in read and is_wide(axis, launch)
    ]
    if not unread or None in read or is_opaque(kernel, *kernel.node.body):
        return
    for axis, element in unread:
        yield Fault(
            element,
            f"{kernel.node.name} never reads tl.program_id({axis}): all {ast.unparse(element)} programs "
            "along this axis do the same work on the same places.",
            f"Use tl.program_id({axis}) in the kernel, or make this element 1.",
        )
