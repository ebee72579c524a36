"""Grids whose axes are swapped, rounded down, missing, or read by nobody."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import (
    BlockWalk,
    Division,
    alike,
    block_walks,
    counts_blocks,
    grid_of,
    is_opaque,
    is_wide,
    parameters_for,
    program_ids,
    rounded_down,
    rounded_up,
)
from pytorch_to_triton.audit.analysis.launched_tensors import factors_of, size_of
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

_COPY = jit(LANES, "tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)")


def _launched(grid: str, size: str = "x.numel()") -> str:
    return _COPY + run(f"n = {size}", f"kernel[{grid}](x, out, n, B=1024)")


@kernel_rule(
    "high",
    "correctness",
    bad=(_launched('lambda meta: (n // meta["B"],)'),),
    good=(_launched("(n // 1024 + 1,)"), _launched("(max(n // 1024, 1),)", "x.shape[0] * 1024")),
)
def grid_rounds_down(kernel: SourceKernel) -> Iterator[Fault]:
    """A grid has a size divided by the block size and rounded down.

    Where the size is not a multiple of the block size, no program computes the rest: the end of the output
    keeps what was in memory before. A size below one block launches nothing at all.

    Fix: round up with triton.cdiv, and let the mask cut off the excess.
    """
    for launch in kernel.launches:
        for axis, element in enumerate(grid_of(launch) or ()):
            division = rounded_down(element, launch)
            if division is None or _divides(division, launch):
                continue
            masked = _masked_size(kernel, launch, division, axis)
            if masked:
                size, block = ast.unparse(division.size), ast.unparse(division.block)
                yield Fault(
                    element,
                    f"The grid has {size} // {block} programs: where {block} does not divide {size}, the "
                    f"last elements are never computed, though {kernel.name} masks what lies beyond "
                    f"{masked}.",
                    "Round up with triton.cdiv.",
                    f"triton.cdiv({size}, {block})" if isinstance(element, ast.BinOp) else "",
                )


def _masked_size(kernel: SourceKernel, launch: LaunchSite, division: Division, axis: int) -> str | None:
    """The parameter that is passed the size and bounds the offsets of one block for each program."""
    blocks = parameters_for(division.block, launch)
    given = launch.given
    for walk in block_walks(kernel):
        is_own = walk.axis == axis and walk.block in blocks and walk.size in given
        if is_own and alike(given[walk.size], division.size, launch):
            return walk.size
    return None


def _divides(division: Division, launch: LaunchSite) -> bool:
    """Whether anything shows that the division leaves no remainder: literals, a test of it, padding."""
    size, block = (literal_integer(launch.flow.resolved(side)) for side in (division.size, division.block))
    if size is not None and block:
        return size % block == 0
    # A number of elements is a product, too, of sizes that no block need divide.
    factors = factors_of(division.size, launch)
    are_sizes = all(size_of(factor, launch) for factor in factors)
    made_from = launch.flow.origins(*(factors if are_sizes else [division.size]))
    padded = any(
        isinstance(node, ast.Mult | ast.Mod | ast.FloorDiv | ast.LShift | ast.BitAnd | ast.USub)
        or (isinstance(node, ast.Name | ast.Attribute) and "pad" in ast.unparse(node))
        for node in made_from
    )
    around = launch.function.body if launch.function else []
    remainders = (node for top in around for node in ast.walk(top) if isinstance(node, ast.Mod))
    return padded or any(remainders)


def _tiles(first: int, second: int) -> str:
    tiles = jit(
        f"rows = tl.program_id({first}) * B + tl.arange(0, B)",
        f"cols = tl.program_id({second}) * C + tl.arange(0, C)",
        "mask = (rows[:, None] < M) & (cols[None, :] < N)",
        "tl.store(x_ptr + rows[:, None] * N + cols[None, :], 0.0, mask=mask)",
        takes="x_ptr, M, N, B: tl.constexpr, C: tl.constexpr",
    )
    grid = "(triton.cdiv(M, 16), triton.cdiv(N, 64))"
    return tiles + run("M, N = x.shape", f"kernel[{grid}](x, M, N, B=16, C=64)", takes="x")


@kernel_rule("high", "correctness", bad=(_tiles(1, 0),), good=(_tiles(0, 1),))
def grid_axes_swapped(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel takes its program id along one axis, and the launch counts those blocks along another.

    There are as many programs as the other axis needs: unless both numbers agree, a part of the output is
    never computed, or programs run beyond the end and do nothing.

    Fix: call tl.program_id with the axis along which the grid divides that size.
    """
    for walk in block_walks(kernel):
        for launch in kernel.launches:
            axis = _counted_along(walk, kernel, launch)
            calls = [call for call, asked in program_ids(kernel) if asked == walk.axis]
            if axis is None:
                continue
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
    size = launch.given.get(walk.size)
    asked = max((axis for _, axis in program_ids(kernel) if axis is not None), default=0)
    # An axis that the grid does not have is another fault.
    if size is None or max(asked, walk.axis) >= len(grid) or not _is_of_other(grid[walk.axis], size, launch):
        return None
    axes = [at for at, element in enumerate(grid) if counts_blocks(element, walk.block, launch, size)]
    return axes[0] if len(axes) == 1 else None


def _is_of_other(element: ast.expr, size: ast.expr, launch: LaunchSite) -> bool:
    """Whether an element of the grid is certainly made from another size."""
    division = rounded_up(element, launch)
    counted = division.size if division else element
    own, other = size_of(size, launch), size_of(counted, launch)
    return own is not None and other is not None and own != other and not alike(size, counted, launch)


_ROWS = jit("tl.store(x_ptr + tl.program_id(axis=1) * n + tl.program_id(0), 0.0)", takes="x_ptr, n")


@kernel_rule(
    "critical",
    "correctness",
    bad=(_ROWS + run("kernel[(x.shape[1],)](x, x.shape[1])"),),
    good=(_ROWS + run("kernel[(4, *axes)](x, x.shape[1])", takes="x, axes"),),
)
def program_axis_outside_grid(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel takes its program id along an axis that the grid of its launch does not have.

    tl.program_id is 0 for every program along such an axis: the kernel computes the first part again and
    again, and never the rest.

    Fix: give the grid an element for each axis, or use an axis that it has.
    """
    launched = _launched_kernels(kernel)
    grids = [grid_of(launch) for one in launched for launch in one.launches]
    lengths = {len(grid) if grid else 3 for grid in grids}
    for call, axis in program_ids(kernel):
        if axis is not None and axis > 2:
            message = f"A grid has three axes at most, counted from 0: Triton refuses tl.program_id({axis})."
            yield Fault(call, message, "Use axis 0, 1 or 2, and take larger grids apart with // and %.")
            continue
        if axis is None or not lengths or axis < max(lengths) or kernel.conditions(call):
            continue
        axes = "1 axis" if max(lengths) == 1 else f"{max(lengths)} axes"
        names = " and ".join(one.name for one in launched)
        yield Fault(
            call,
            f"The grid that {names} is launched with has {axes}, counted from 0: "
            f"tl.program_id({axis}) is 0 in every program.",
            f"Give the grid {axis + 1} elements, or use an axis below {max(lengths)}.",
        )


def _launched_kernels(kernel: SourceKernel) -> tuple[SourceKernel, ...]:
    """The kernel itself where it is launched, else its callers; none unless all of them surely launch it."""
    if kernel.launches:
        return (kernel,)
    if any(not caller.launches or caller.conditions(call) for caller, call in kernel.callers):
        return ()
    return tuple({caller: None for caller, _ in kernel.callers})


@kernel_rule(
    "medium",
    "correctness",
    bad=(_launched("(triton.cdiv(n, 1024), x.shape[0])"),),
    good=(_launched("(triton.cdiv(n, 1024), 1)"),),
)
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
                    f"{kernel.name} never reads tl.program_id({axis}): all {ast.unparse(element)} "
                    "programs along this axis do the same work on the same places.",
                    f"Use tl.program_id({axis}) in the kernel, or make this element 1.",
                )
