"""Sizes of two axes that are swapped or used twice, and offsets without the program's start."""

import ast
import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import MaskBound, addends, block_start, bounds, range_length
from pytorch_to_triton.audit.analysis.programs import alike, grid_of, parameters_for, rounded_up
from pytorch_to_triton.audit.examples import jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel

_FILLERS = frozenset({"offs", "off", "offset", "offsets", "idx", "index", "indices", "num", "range", "size"})
_AXES = {
    "row": "row",
    "rows": "row",
    "col": "column",
    "cols": "column",
    "column": "column",
    "columns": "column",
}
_LETTERS = frozenset("mnk")
_BOTH = "(rows[:, None] < n_cols) & (cols[None, :] < n_rows)"
_SWAPPED = jit(
    "rows = tl.program_id(0) * B + tl.arange(0, B)",
    "cols = tl.program_id(1) * B + tl.arange(0, B)",
    f"x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask={_BOTH})",
    takes="x_ptr, n_rows, n_cols, B: tl.constexpr",
)
_STARTLESS = jit("i = tl.arange(0, B)", "tl.store(x_ptr + tl.program_id(0) * B + i, 0.0, mask=i < n)")
_SCORES = jit(
    "offs_m = tl.program_id(0) * B + tl.arange(0, B)",
    "offs_n = tl.arange(0, B)",
    "mask = (offs_m[:, None] < N) & (offs_n[None, :] < N)",
    "scores = tl.load(s_ptr + offs_m[:, None] * N + offs_n[None, :], mask=mask)",
    "tl.store(M + offs_m, tl.max(scores, axis=1), mask=offs_m < N)",
    takes="s_ptr, M, N, B: tl.constexpr",
)


@kernel_rule(
    "high",
    "correctness",
    bad=(_SWAPPED, _STARTLESS + run("kernel[(triton.cdiv(len(x), 64),)](x, out, len(x), B=64)")),
    good=(
        # M is a tensor, and what it holds is of N tokens.
        _SCORES,
        # Each program has B numbers of its own.
        _STARTLESS + run("kernel[(len(x),)](x, out, n, B=triton.next_power_of_2(n))", takes="x, out, n"),
    ),
)
def mask_of_other_axis(kernel: SourceKernel) -> Iterator[Fault]:
    """A mask compares other offsets than the address uses.

    It lets through what lies outside of the tensor, or cuts off what lies inside, as soon as the sizes
    differ or there is more than one program.

    Fix: compare each axis's own offsets, the program's start included, with that axis's size.
    """
    reported: set[ast.Compare] = set()
    for access in kernel.accesses:
        limits = list(bounds(access.mask, kernel))
        for bound in limits:
            wrong = _of_other_axis(bound, limits, kernel) or _lacks_start(bound, access, kernel)
            if wrong and bound.comparison not in reported:
                reported.add(bound.comparison)
                yield wrong


def _of_other_axis(bound: MaskBound, limits: list[MaskBound], kernel: SourceKernel) -> Fault | None:
    """By their names: rows against the number of columns, while there is a mask for columns, too."""
    offsets, size = _axis(bound.offsets), _axis(bound.size)
    if offsets is None or size in (None, offsets):
        return None
    named = (name for name in kernel.parameters if _axis_of_name(name) == offsets)
    right = next((name for name in named if _is_size(name, kernel)), None)
    if right is None or any(_axis(limit.offsets) == _axis(limit.size) == offsets for limit in limits):
        return None
    others = {_axis(other.offsets) for other in limits if other is not bound}
    if size not in others and not {offsets, size} <= _bound_by_own_size(kernel):
        return None
    text = ast.unparse(bound.offsets)
    return Fault(
        bound.comparison,
        f"{text} is compared with {ast.unparse(bound.size)}, the size of the other axis: wherever {right} is "
        "different, elements are left out or taken from beyond the end.",
        f"Compare {text} with {right}.",
        f"{text} < {right}" if not bound.inclusive and len(bound.comparison.ops) == 1 else "",
    )


def _bound_by_own_size(kernel: SourceKernel) -> frozenset[str]:
    """The axes of which some mask compares the offsets with their own size."""
    limits = [bound for access in kernel.accesses for bound in bounds(access.mask, kernel)]
    pairs = [(_axis(bound.offsets), _axis(bound.size)) for bound in limits]
    return frozenset(offsets for offsets, size in pairs if offsets is not None and offsets == size)


def _is_size(name: str, kernel: SourceKernel) -> bool:
    """Whether nothing is done with a parameter that one would do with a pointer."""
    uses = [node for node in kernel.nodes if isinstance(node, ast.Name) and node.id == name]
    around = [kernel.flow.parents.get(use) for use in uses]
    return all(
        isinstance(outer, ast.Compare)
        or (isinstance(outer, ast.BinOp) and not isinstance(outer.op, ast.Add))
        or (isinstance(outer, ast.Call) and (kernel.scope.path(outer.func) or "").endswith(".cdiv"))
        for outer in around
    )


def _axis(value: ast.expr) -> str | None:
    while isinstance(value, ast.Subscript):
        value = value.value
    return _axis_of_name(value.id) if isinstance(value, ast.Name) else None


def _axis_of_name(name: str) -> str | None:
    """`row` for rows and n_rows, `m` for offs_m, rm and M; None where the name says more, or nothing."""
    words = [word for word in re.split(r"_+", name.lower()) if word and word not in _FILLERS]
    if words[:1] == ["n"] and len(words) == 2:
        words = words[1:]
    match words:
        case [word] if word in _AXES:
            return _AXES[word]
        case [word] if word in _LETTERS:
            return word
        case [word] if len(word) == 2 and word[0] == "r" and word[1] in _LETTERS:
            return word[1]
    return None


def _lacks_start(bound: MaskBound, access: KernelAccess, kernel: SourceKernel) -> Fault | None:
    """`tl.arange(0, B) < n` for an address at `tl.program_id(0) * B`, in a grid of cdiv(n, B) programs."""
    block = range_length(bound.offsets, kernel)
    if (
        block is None
        or not isinstance(bound.size, ast.Name)
        or bound.size.id not in kernel.runtime_parameters
    ):
        return None
    parts = addends(access.address, kernel)
    starts = [start for part in parts if (start := block_start(part, kernel)) and start[1] == block]
    if len(starts) != 1 or block not in {range_length(part, kernel) for part in parts}:
        return None
    axis, _ = starts[0]
    if not any(_has_block_for_each(axis, block, bound.size.id, kernel, launch) for launch in kernel.launches):
        return None
    size = bound.size.id
    return Fault(
        bound.comparison,
        f"The mask compares 0 to {block} - 1 with {size}, and the address starts at tl.program_id({axis}) * "
        f"{block}: the last program runs past {size}.",
        f"Compare tl.program_id({axis}) * {block} + tl.arange(0, {block}) with {size}.",
    )


def _has_block_for_each(axis: int, block: str, size: str, kernel: SourceKernel, launch: LaunchSite) -> bool:
    """Whether the grid has cdiv(size, block) programs along the axis."""
    grid = grid_of(launch) or ()
    given = launch.given(kernel)
    division = rounded_up(grid[axis], launch) if axis < len(grid) else None
    if division is None or size not in given:
        return False
    return alike(division.size, given[size], launch) and block in parameters_for(
        division.block, kernel, launch
    )
