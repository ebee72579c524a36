"""The blocks of neighboring programs overlap, because a program id is not multiplied by the block size.

`tl.program_id(0) + tl.arange(0, BLOCK)` starts each block one element behind the last one: programs write
over each other's results, and all but the beginning of the tensor is left out.

Fix: start at tl.program_id(0) * BLOCK.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import addends, program_axis, range_length
from pytorch_to_triton.audit.analysis.programs import grid_of, parameters_for, rounded_up
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

SEVERITY = "high"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
""",
    """
@triton.jit
def kernel(x_ptr, total_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) + tl.program_id(0)
    tl.atomic_add(total_ptr, tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0)))

def run(x, total):
    kernel[(triton.cdiv(x.numel(), 256),)](x, total, x.numel(), BLOCK=256)
""",
)
GOOD = (
    # Each program reads a window of its own place.
    """
@triton.jit
def kernel(x_ptr, out_ptr, n, WINDOW: tl.constexpr):
    i = tl.program_id(0) + tl.arange(0, WINDOW)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i)))

def run(x, out):
    kernel[(out.numel(),)](x, out, out.numel(), WINDOW=8)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Stores at such places, and loads where the grid has one program for each block."""
    found: set[tuple[int, str]] = set()
    for access in kernel.accesses:
        parts = addends(access.address, kernel)
        axes = [axis for part in parts if (axis := program_axis(part, kernel)) is not None]
        lengths = [length for part in parts if (length := range_length(part, kernel)) not in (None, "1")]
        if len(axes) != 1 or len(lengths) != 1 or (axes[0], lengths[0]) in found:
            continue
        (axis,), (length,) = axes, lengths
        if length and (_is_whole_store(access) or _has_program_a_block(kernel, axis, length)):
            found.add((axis, length))
            yield Fault(
                _place(access, kernel),
                f"Blocks of {length} elements start only one element apart, at tl.program_id({axis}): they "
                "overlap, and the end of the tensor is never reached.",
                f"Write tl.program_id({axis}) * {length} + tl.arange(0, {length}).",
            )


def _is_whole_store(access: KernelAccess) -> bool:
    """Whether it stores more than the one lane that `mask=lanes == 0` picks."""
    picks = access.mask is not None and any(isinstance(node, ast.Eq) for node in ast.walk(access.mask))
    return access.name == "store" and not picks


def _has_program_a_block(kernel: SourceKernel, axis: int, length: str) -> bool:
    """Whether a launch divides a size by the length of the block to get its grid."""
    for launch in kernel.launches:
        grid = grid_of(launch) or ()
        division = rounded_up(grid[axis], launch) if axis < len(grid) else None
        if division and length in parameters_for(division.block, kernel, launch):
            return True
    return False


def _place(access: KernelAccess, kernel: SourceKernel) -> ast.expr:
    """Where the sum is written, which may be far above the access."""
    sums = [
        node
        for node in kernel.flow.origins(access.address)
        if isinstance(node, ast.BinOp)
        and any(program_axis(part, kernel) is not None for part in (node.left, node.right))
    ]
    return min(sums, key=lambda node: (node.lineno, node.col_offset), default=access.call)
