"""Fixed numbers of programs along sizes of the caller's tensors, where each program has one part."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.addresses import (
    MaskBound,
    all_bounds,
    grid_of,
    program_axes,
    rounded_to_power,
)
from pytorch_to_triton.audit.analysis.callers import is_trial
from pytorch_to_triton.audit.analysis.covered import is_tested
from pytorch_to_triton.audit.analysis.launch_sizes import constant, declared_size
from pytorch_to_triton.audit.analysis.launched_tensors import (
    Extent,
    callers_parameters,
    callers_size,
    size_of,
    text_of,
)
from pytorch_to_triton.audit.analysis.tails import may_overrun
from pytorch_to_triton.audit.call_arguments import factors
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel

_FEW = 4
"""So many programs may well stand for a choice, such as keys or values."""
_FILL = jit(LANES, "tl.store(x_ptr + i, 0.0, mask=i < n)")
_DECLARED = 'INPUTS = {"x": "float32[N]"}\nDIMS = {"N": [100, 1024]}\nREQUIRES = ["N <= 8192"]\n'


def _launched(programs: str, *before: str, block: str = "1024", takes: str = "x") -> str:
    return _FILL + run(*before, f"kernel[({programs},)](x, x, x.numel(), B={block})", takes=takes)


@dataclass(frozen=True)
class _Fixed:
    """An axis of a grid that has the same number of programs whatever the sizes."""

    axis: int
    programs: int | None
    """None: as many as the GPU has SMs."""

    def __str__(self) -> str:
        return f"{self.programs} programs" if self.programs else "as many programs as SMs"


@kernel_rule(
    "high",
    "correctness",
    bad=(_launched("8"),),
    good=(
        _launched("1", block="triton.next_power_of_2(x.numel())"),
        # The size is known, or the declaration bounds it.
        _launched("4", "x = torch.empty(4096)", takes=""),
        _DECLARED + _launched("8"),
    ),
)
def hard_coded_grid(kernel: SourceKernel) -> Iterator[Fault]:
    """A launch has a fixed number of programs, and blocks of a fixed size, for tensors of any size.

    What lies beyond their product is never computed: the output keeps whatever was in its memory. What lies
    below it is masked away, in programs that do nothing.

    Fix: compute the grid from the size: `(triton.cdiv(n, BLOCK),)`.
    """
    # Programs that loop from their own place on, or over a number that they are given, take several parts.
    sources = [node.iter for node in kernel.nodes if isinstance(node, ast.For)]
    walked = program_axes(kernel, *sources)
    if "num_programs" in kernel.made_by(*sources) or any(
        isinstance(node, ast.While) for node in kernel.nodes
    ):
        return
    for launch in kernel.launches:
        grid = grid_of(launch) or ()
        if is_trial(kernel.file, launch.function) or is_tested(launch) or launch.flow.loops(launch.call):
            continue
        fixed_axes = (fixed for axis, one in enumerate(grid) if (fixed := _fixed_axis(axis, one, launch)))
        faults = (
            _too_few(fixed, len(grid), kernel, launch) for fixed in fixed_axes if fixed.axis not in walked
        )
        if first := next((fault for fault in faults if fault), None):
            yield first


def _fixed_axis(axis: int, element: ast.expr, launch: LaunchSite) -> _Fixed | None:
    number = constant(element, launch)
    if number is not None:
        return _Fixed(axis, number)
    names = {node.attr for node in launch.flow.origins(element) if isinstance(node, ast.Attribute)}
    return _Fixed(axis, None) if "multi_processor_count" in names else None


def _too_few(fixed: _Fixed, axes: int, kernel: SourceKernel, launch: LaunchSite) -> Fault | None:
    """The size that the programs along an axis do not cover."""
    for access, bound in all_bounds(kernel):
        if fixed.axis in program_axes(kernel, bound.offsets) and not kernel.loops(access.call):
            size = _callers_size(bound, kernel, launch)
            return _of_blocks(fixed, bound, size, kernel, launch) if size else None
    if axes == 1 and (fixed.programs is None or fixed.programs > _FEW):
        return _of_rows(fixed, kernel, launch)
    return None


def _callers_size(bound: MaskBound, kernel: SourceKernel, launch: LaunchSite) -> Extent | None:
    """The size of a caller's tensor that a mask compares with; names are followed."""
    match kernel.bare(bound.size):
        case ast.Name(id=name) if (value := launch.given.get(name)) is not None:
            size = size_of(value, launch)
            return callers_size(size, launch) if size else None
    return None


def _of_blocks(
    fixed: _Fixed, bound: MaskBound, size: Extent, kernel: SourceKernel, launch: LaunchSite
) -> Fault | None:
    ends = list(kernel.range_ends(bound.offsets))
    end = kernel.resolved(ends[0]) if len(ends) == 1 else None
    given = launch.given.get(end.id) if isinstance(end, ast.Name) else end
    if end is None or (given is not None and rounded_to_power([given], launch)):
        return None
    block = constant(given, launch) if given is not None else None
    covered = block * fixed.programs if block and fixed.programs else None
    declared = declared_size(size, launch)
    if covered and declared and not declared.allows(covered + 1):
        return None
    length = block or ast.unparse(ends[0])
    coverage = f", which cover {covered:,}" if covered else ""
    return Fault(
        launch.call,
        f"There are {fixed} of {length} elements{coverage}; where {text_of(size)} is larger, the rest "
        "is never computed.",
        f"Launch triton.cdiv({text_of(size)}, {length}) programs along axis {fixed.axis}, or let each loop.",
    )


def _of_rows(fixed: _Fixed, kernel: SourceKernel, launch: LaunchSite) -> Fault | None:
    """Where a program takes a row, at its id times a stride, of a tensor that the caller passes."""
    for access in kernel.accesses:
        tensor = launch.given.get(access.pointer or "")
        is_callers = isinstance(tensor, ast.Name) and tensor.id in callers_parameters(launch)
        if is_callers and not kernel.loops(access.call) and _takes_row(fixed, access, kernel):
            count = fixed.programs or "as many as the GPU has SMs"
            return Fault(
                launch.call,
                f"Each program takes one row or block, and there are {count}: of a tensor with more the rest "
                "is never computed, one with fewer is overrun.",
                "Launch as many programs as there are rows or blocks, or let each one loop.",
            )
    return None


def _takes_row(fixed: _Fixed, access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether its address holds `program * stride`, or is in a block that nothing keeps within the tensor."""
    for node in kernel.origins(access.address):
        for factor, other in factors(node):
            stride = kernel.bare(factor)
            is_given = isinstance(stride, ast.Name) and stride.id in kernel.runtime_parameters
            if is_given and 0 in program_axes(kernel, other) and not kernel.is_block(other):
                return True
    is_own = fixed.axis in program_axes(kernel, access.address)
    return is_own and kernel.is_block(access.address) and may_overrun(access, kernel)
