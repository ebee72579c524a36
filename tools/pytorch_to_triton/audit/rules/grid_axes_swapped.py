"""Blocks of a size along one axis of the grid, where the launch divides that size along another."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import BlockWalk, block_walks
from pytorch_to_triton.audit.analysis.passed import size_of
from pytorch_to_triton.audit.analysis.programs import (
    alike,
    grid_of,
    parameters_for,
    program_ids,
    rounded_up,
)
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, M, N, stride, BM: tl.constexpr, BN: tl.constexpr):
    pid_m = tl.program_id({})
    pid_n = tl.program_id({})
    rows = pid_m * BM + tl.arange(0, BM)
    cols = pid_n * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(x_ptr + rows[:, None] * stride + cols[None, :], 0.0, mask=mask)
"""
_RUN = """
def run(x):
    M, N = x.shape
    grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
    kernel[grid](x, M, N, x.stride(0), BM=16, BN=64)
"""
_ROWS = """
@triton.jit
def kernel(x_ptr, N, stride, B: tl.constexpr):
    row = tl.program_id({})
    cols = tl.program_id({}) * B + tl.arange(0, B)
    tl.store(x_ptr + row * stride + cols, 0.0, mask=cols < N)

def run(x):
    n_rows, n_cols = x.shape
    kernel[(n_rows, triton.cdiv(n_cols, 256))](x, n_cols, x.stride(0), B=256)
"""
BAD = (_KERNEL.format(1, 0) + _RUN,)
GOOD = (_ROWS.format(0, 1),)


@kernel_rule("high", "correctness", BAD, GOOD)
def grid_axes_swapped(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel takes its program id along one axis, and the launch counts those blocks along another.

    There are as many programs as the other axis needs: unless both numbers agree, a part of the output is
    never computed, or programs run beyond the end and do nothing.

    Fix: call tl.program_id with the axis along which the grid divides that size.
    """
    found: set[ast.Call] = set()
    for walk in block_walks(kernel):
        for launch in kernel.launches:
            axis = _counted_along(walk, kernel, launch)
            calls = [call for call, asked in program_ids(kernel) if asked == walk.axis]
            if axis is None or found.intersection(calls):
                continue
            found.update(calls)
            yield Fault(
                calls[0],
                f"The blocks of {walk.block} over {walk.size} are counted along axis {walk.axis}, and the "
                f"grid in line {launch.call.lineno} divides {walk.size} along axis {axis}: part of the "
                "output is never computed unless both axes have as many programs.",
                f"Use tl.program_id({axis}) here, or swap the elements of the grid.",
                f"tl.program_id({axis})",
            )


def _counted_along(walk: BlockWalk, kernel: SourceKernel, launch: LaunchSite) -> int | None:
    """The one axis along which the grid divides the size by the block, where it is certainly another."""
    grid = grid_of(launch) or ()
    size = launch.given(kernel).get(walk.size)
    asked = max((axis for _, axis in program_ids(kernel) if axis is not None), default=0)
    # An axis that the grid does not have is another fault.
    if size is None or max(asked, walk.axis) >= len(grid) or not _is_of_other(grid[walk.axis], size, launch):
        return None
    axes = [axis for axis, element in enumerate(grid) if _divides(element, size, walk, kernel, launch)]
    return axes[0] if len(axes) == 1 else None


def _is_of_other(element: ast.expr, size: ast.expr, launch: LaunchSite) -> bool:
    """Whether an element of the grid is certainly made from another size."""
    division = rounded_up(element, launch)
    counted = division.size if division else element
    own, other = size_of(size, launch), size_of(counted, launch)
    return own is not None and other is not None and own != other and not alike(size, counted, launch)


def _divides(
    element: ast.expr, size: ast.expr, walk: BlockWalk, kernel: SourceKernel, launch: LaunchSite
) -> bool:
    division = rounded_up(element, launch)
    if division is None or not alike(division.size, size, launch):
        return False
    return walk.block in parameters_for(division.block, kernel, launch)
