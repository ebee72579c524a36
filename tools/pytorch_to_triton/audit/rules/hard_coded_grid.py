"""A launch has a fixed number of programs, and blocks of a fixed size, for tensors of any size.

What lies beyond their product is never computed: the output keeps whatever was in its memory. What lies
below it is masked away, in programs that do nothing.

Instead, compute the grid from the size: `(triton.cdiv(n, BLOCK),)`.
"""

import ast
import math
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arguments import whole_number
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.passed import size_of
from pytorch_to_triton.audit.analysis.programs import grid_of
from pytorch_to_triton.audit.analysis.tensors import callers_parameters, text_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Kernel, Launch

SEVERITY = "medium"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
_RUN = """
def run(x):
    kernel[{}](x, x.numel(), B={})
    return x
"""
BAD = (
    _KERNEL + _RUN.format("(8,)", 1024),
    _KERNEL + _RUN.format("grid", 256).replace("kernel[", "grid = (64,)\n    kernel["),
    _KERNEL.replace("B: tl.constexpr", "").replace("B", "512") + _RUN.format("(4,)", 1).replace(", B=1", ""),
)
GOOD = (
    _KERNEL + _RUN.format("(triton.cdiv(x.numel(), 1024),)", 1024),
    _KERNEL + _RUN.format("(1,)", "triton.next_power_of_2(x.numel())"),
    _KERNEL + _RUN.format("(8,)", 1024).replace("kernel[", "assert x.numel() <= 8192\n    kernel["),
    # Its programs walk over all blocks.
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        tl.store(x_ptr + i, 0.0, mask=i < n)
"""
    + _RUN.format("(8,)", 1024),
    # The size is known.
    _KERNEL + "def run():\n    x = torch.empty(4096)\n    kernel[(4,)](x, x.numel(), B=1024)\n",
)


def check(kernel: Kernel) -> Iterator[Fault]:
    """Literal grids and blocks for a size of the caller's tensor that a mask of the kernel compares with."""
    if any(isinstance(node, ast.For | ast.While) for node in kernel.nodes):
        return
    for launch in kernel.launches:
        grid = [whole_number(launch.flow.resolved(one)) for one in grid_of(launch) or ()]
        programs = math.prod(one or 0 for one in grid)
        if not programs or len(grid) != 1 or is_trial(kernel.file, launch.function) or _is_checked(launch):
            continue
        for name, size in _sizes(kernel, launch):
            block = _block(kernel, launch, name)
            if block:
                yield Fault(
                    launch.call,
                    f"{programs} programs of {block} elements cover {programs * block:,}; of a tensor whose "
                    f"{size} is larger the rest is never computed.",
                    f"Launch it with the grid (triton.cdiv({size}, {block}),).",
                )
                break


def _sizes(kernel: Kernel, launch: Launch) -> Iterator[tuple[str, str]]:
    """The kernel's parameters that get a size of a tensor which the caller passes, with that size."""
    for name, value in launch.given(kernel).items():
        size = size_of(value, launch)
        if size and size.tensor in callers_parameters(launch):
            yield name, text_of(size)


def _block(kernel: Kernel, launch: Launch, size: str) -> int | None:
    """The literal length of the blocks whose offsets are compared with a size; None where it is open."""
    given = launch.given(kernel)
    for access in kernel.accesses:
        match access.mask and kernel.flow.resolved(access.mask):
            case ast.Compare(left=offsets, ops=[ast.Lt()], comparators=[ast.Name(id=bound)]) if bound == size:
                pass
            case _:
                continue
        calls = [*kernel.flow.calls(offsets)]
        ranges = [call for path, call in calls if path == "triton.language.arange" and len(call.args) == 2]
        if len(ranges) == 1 and any(path == "triton.language.program_id" for path, _ in calls):
            end = kernel.flow.resolved(ranges[0].args[1])
            given_end = given.get(end.id) if isinstance(end, ast.Name) else end
            return whole_number(launch.flow.resolved(given_end)) if given_end is not None else None
    return None


def _is_checked(launch: Launch) -> bool:
    """Whether the launching function refuses or tells apart anything."""
    body = launch.function.body if launch.function else []
    return any(
        isinstance(node, ast.Assert | ast.Raise | ast.If | ast.For) for one in body for node in ast.walk(one)
    )
