"""`size // BLOCK`, where the kernel masks a BLOCK for each program by that very size."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import block_walks
from pytorch_to_triton.audit.analysis.passed import size_of
from pytorch_to_triton.audit.analysis.programs import Division, alike, grid_of, parameters_for, rounded_down
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    tl.store(x_ptr + i, 2.0 * tl.load(x_ptr + i, mask=mask), mask=mask)
"""
BAD = (
    _KERNEL
    + """
def run(x):
    n = x.numel()
    grid = lambda meta: (n // meta["B"],)
    kernel[grid](x, n, B=1024)
""",
)
GOOD = (
    _KERNEL
    + """
def run(x):
    n = x.numel()
    kernel[(n // 1024 + 1,)](x, n, B=1024)
""",
    _KERNEL
    + """
def run(x):
    n = x.shape[0] * 1024
    kernel[(max(n // 1024, 1),)](x, n, B=1024)
""",
)


@kernel_rule("high", "correctness", BAD, GOOD)
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
                    f"last elements are never computed, though {kernel.node.name} masks what lies beyond "
                    f"{masked}.",
                    "Round up with triton.cdiv.",
                    f"triton.cdiv({size}, {block})" if isinstance(element, ast.BinOp) else "",
                )


def _masked_size(kernel: SourceKernel, launch: LaunchSite, division: Division, axis: int) -> str | None:
    """The parameter that is passed the size and bounds the offsets of one block for each program."""
    blocks = parameters_for(division.block, kernel, launch)
    given = launch.given(kernel)
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
    sizes = _factors(division.size, launch)
    made_from = launch.flow.origins(*sizes)
    padded = any(
        isinstance(node, ast.Mult | ast.Mod | ast.FloorDiv | ast.LShift | ast.BitAnd | ast.USub)
        or (isinstance(node, ast.Name | ast.Attribute) and "pad" in ast.unparse(node))
        for node in made_from
    )
    around = launch.function.body if launch.function else []
    remainders = (node for top in around for node in ast.walk(top) if isinstance(node, ast.Mod))
    return padded or any(remainders)


def _factors(size: ast.expr, launch: LaunchSite) -> list[ast.expr]:
    """The sizes of tensors that a size is a product of; else the size itself."""
    value = launch.flow.resolved(size)
    match value:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            factors = [*_factors(left, launch), *_factors(right, launch)]
            if all(size_of(one, launch) for one in factors):
                return factors
    return [size]
