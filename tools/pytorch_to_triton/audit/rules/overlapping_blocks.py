"""Blocks that start one element apart: a program id that is added, not multiplied by the block size."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import addends, program_axis, range_length
from pytorch_to_triton.audit.analysis.programs import grid_of, parameters_for, rounded_up
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_kernel = example("@triton.jit\ndef kernel(x_ptr, out_ptr, n, B: tl.constexpr):\n")
_window = _kernel(
    "i = tl.program_id(0) + tl.arange(0, B)", "tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i)))"
)
BAD = (
    _kernel("i = tl.program_id(0) + tl.arange(0, B)", "tl.store(out_ptr + i, 0.0, mask=i < n)"),
    _window + "\ndef run(x, out):\n    kernel[(triton.cdiv(len(x), 256),)](x, out, len(x), B=256)\n",
)
GOOD = (
    _window + "\ndef run(x, out):\n    kernel[(len(x) - 7,)](x, out, len(x), B=8)\n",
    _kernel("i = tl.arange(0, B)", "tl.store(out_ptr + tl.program_id(0) + i, 0.0, mask=i == 0)"),
)


@kernel_rule("high", "correctness", BAD, GOOD)
def overlapping_blocks(kernel: SourceKernel) -> Iterator[Fault]:
    """The blocks of neighboring programs overlap: a program id is not multiplied by the block size.

    `tl.program_id(0) + tl.arange(0, BLOCK)` starts each block one element behind the last one. Programs write
    over each other's results, and all but the beginning of the tensor is left out.

    Fix: start at tl.program_id(0) * BLOCK.
    """
    starts: dict[tuple[int, str], KernelAccess] = {}
    for access in kernel.accesses:
        parts = addends(access.address, kernel)
        axes = [axis for part in parts if (axis := program_axis(part, kernel)) is not None]
        lengths = [length for part in parts if (length := range_length(part, kernel)) not in (None, "1")]
        if len(axes) != 1 or len(lengths) != 1 or lengths[0] is None:
            continue
        axis, length = axes[0], lengths[0]
        if _stores_block(access) or _has_program_a_block(kernel, axis, length):
            starts.setdefault((axis, length), access)
    for (axis, length), access in starts.items():
        yield Fault(
            access.call,
            f"Blocks of {length} elements start only one element apart, at tl.program_id({axis}): they "
            "overlap, and the end of the tensor is never reached.",
            f"Write tl.program_id({axis}) * {length} + tl.arange(0, {length}).",
        )


def _stores_block(access: KernelAccess) -> bool:
    """Whether it stores more than the one lane that `mask=lanes == 0` picks."""
    picks = access.mask is not None and any(isinstance(node, ast.Eq) for node in ast.walk(access.mask))
    return access.name == "store" and not picks


def _has_program_a_block(kernel: SourceKernel, axis: int, length: str) -> bool:
    """Whether a launch has one program for each block along the axis."""
    grids = ((grid_of(launch) or (), launch) for launch in kernel.launches)
    divisions = ((rounded_up(grid[axis], launch), launch) for grid, launch in grids if axis < len(grid))
    return any(div and length in parameters_for(div.block, kernel, launch) for div, launch in divisions)
