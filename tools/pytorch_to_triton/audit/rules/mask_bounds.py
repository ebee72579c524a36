"""Masks that let one element too many pass, miss the lower end, or compare with the size of another axis."""

import ast
import re
from collections import Counter
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import (
    MaskBound,
    addends,
    alike,
    all_bounds,
    block_start,
    bounds,
    conjuncts,
    counts_blocks,
    grid_of,
    program_axis,
    range_length,
    rounded_up,
)
from pytorch_to_triton.audit.analysis.launched_tensors import size_of
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import Operation
from pytorch_to_triton.audit.rule import Unconfirmed, kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, LaunchSite, SourceKernel

_LAUNCH = run("kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), B=64)")


@kernel_rule(
    "high",
    "correctness",
    bad=(jit(LANES, "tl.store(out_ptr + i, 0.0, mask=i <= n)") + _LAUNCH,),
    good=(jit(LANES, "x = tl.load(x_ptr + i - 1, mask=(i > 0) & (i <= n))") + _LAUNCH,),
)
def mask_off_by_one(kernel: SourceKernel) -> Iterator[Fault]:
    """A mask lets one element too many pass: `offsets <= n` where n is a count.

    The last element of n has the offset n - 1. The element at n is not the tensor's: it is read as if it
    were, or something else is overwritten.

    Fix: compare with `<`.
    """
    for access, bound in all_bounds(kernel):
        if bound.inclusive and _is_whole(bound, access, kernel):
            size, text = ast.unparse(bound.size), ast.unparse(bound.offsets)
            yield Fault(
                bound.comparison,
                f"{size} is a count: the last valid offset is {size} - 1, and this mask lets {text} = "
                f"{size} pass, one element beyond the end.",
                f"Write {text} < {size}.",
                f"{text} < {size}" if len(bound.comparison.ops) == 1 else "",
            )


def _is_whole(bound: MaskBound, access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether the bound's size counts what the offsets run over, from 0."""
    size = bound.size
    if not isinstance(size, ast.Name) or size.id not in kernel.parameters:
        return False
    if not any(range_length(part, kernel) for part in addends(bound.offsets, kernel)):
        return False
    made_from = kernel.origins(access.address)
    shifted = any(isinstance(node, ast.Sub | ast.USub | ast.Mod) for node in made_from)
    used = any(
        isinstance(node, ast.expr) and kernel.same(kernel.bare(node), kernel.bare(bound.offsets))
        for node in made_from
        if isinstance(node, ast.Name | ast.BinOp)
    )
    if shifted or not used:
        return False
    return _is_bound_elsewhere(bound, access, kernel) or any(
        _is_count(size.id, access, kernel, launch) for launch in kernel.launches
    )


def _is_bound_elsewhere(bound: MaskBound, access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether another access to the same tensor says `offsets < size` of the same two."""
    return any(
        not other.inclusive
        and kernel.same(kernel.bare(other.size), kernel.bare(bound.size))
        and kernel.same(kernel.bare(other.offsets), kernel.bare(bound.offsets))
        for another, other in all_bounds(kernel)
        if another.pointer == access.pointer
    )


def _is_count(size: str, access: KernelAccess, kernel: SourceKernel, launch: LaunchSite) -> bool:
    """Whether a launch passes the tensor's own size, or has a program for each block of so many elements."""
    given = launch.given
    if size not in given:
        return False
    extent = size_of(given[size], launch)
    tensor = given.get(access.pointer or "")
    if extent and tensor is not None and extent.tensor == ast.unparse(tensor):
        return True
    divisions = [rounded_up(element, launch) for element in grid_of(launch) or ()]
    return any(division and alike(division.size, given[size], launch) for division in divisions)


def _window(at: str, mask: str, steps: str = "4") -> str:
    loop = (
        f"for w in range({steps}):",
        f"    at = {at}",
        f"    x = tl.load(x_ptr + at, mask={mask}, other=0.0)",
    )
    return jit(LANES, *loop)


Terms = list[tuple[int, ast.expr]]
"""What a sum adds up, each with its sign."""


@kernel_rule(
    "critical",
    "correctness",
    bad=(_window("i - 3 + w", "at < n"),),
    good=(_window("i - 3 + w", "(at >= 0) & (at < n)"),),
    suspected=Unconfirmed("low", ("out_of_bounds",)),
)
def mask_without_lower_bound(kernel: SourceKernel) -> Iterator[Fault]:
    """Positions from which something is subtracted are masked at the upper end alone.

    The first of them are negative: `-1 < n` lets them through, and the access reaches the row before, or
    what lies in front of the tensor.

    Fix: mask both ends: (i >= 0) & (i < n).
    """
    for access in kernel.accesses:
        for bound in _upper_bounds(access, kernel):
            if _may_be_negative(bound.offsets, kernel) and _is_in(bound.offsets, access.address, kernel):
                text = ast.unparse(bound.offsets)
                yield Fault(
                    bound.comparison,
                    f"{text} is a difference that may be negative, and the mask bounds it from above alone: "
                    f"the access may reach what lies before the row or the tensor of {access.pointer}.",
                    f"Mask {text} >= 0, too.",
                    f"({text} >= 0) & ({ast.unparse(bound.comparison)})",
                )


def _upper_bounds(access: KernelAccess, kernel: SourceKernel) -> list[MaskBound]:
    """The bounds of a mask; empty where anything in it, or around the access, may be a lower bound."""
    if access.mask is None or kernel.conditions(access.call):
        return []
    limits = list(bounds(access.mask, kernel))
    compared = {limit.comparison for limit in limits}
    if any(condition not in compared for condition in conjuncts(access.mask, kernel)):
        return []
    # What differs between lanes or programs is an offset itself.
    are_ends = not {"arange", "program_id"} & kernel.made_by(*(limit.size for limit in limits))
    return limits if are_ends else []


def _is_in(offsets: ast.expr, address: ast.expr, kernel: SourceKernel) -> bool:
    """Whether an address is made from just these offsets."""
    key = kernel.key(kernel.bare(offsets))
    return any(
        kernel.key(kernel.bare(node)) == key for node in kernel.origins(address) if isinstance(node, ast.expr)
    )


def _may_be_negative(offsets: ast.expr, kernel: SourceKernel) -> bool:
    """Whether all that a sum adds up can be zero while it takes something off."""
    if not kernel.is_block(offsets):
        return False
    number, rest, parts = 0.0, Counter[int](), dict[int, ast.expr]()
    for sign, term in _terms(offsets, kernel):
        constant = kernel.number(term)
        if constant is not None:
            number += sign * constant
        else:
            rest[kernel.key(term)] += sign
            parts[kernel.key(term)] = term
    added = [parts[key] for key, count in rest.items() if count > 0]
    taken = [parts[key] for key, count in rest.items() if count < 0]
    if not all(_can_be_zero(term, kernel) for term in added):
        return False
    if not taken:
        return number < 0
    return number <= 1 and all(
        _is_step(term, kernel) or (isinstance(term, ast.Name) and term.id in kernel.parameters)
        for term in taken
    )


def _terms(value: ast.expr, kernel: SourceKernel) -> Terms:
    bare = kernel.bare(value)
    match bare:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_terms(left, kernel), *_terms(right, kernel)]
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return [*_terms(left, kernel), *((-sign, term) for sign, term in _terms(right, kernel))]
    return [(1, bare)]


def _can_be_zero(term: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is a program id, a range from zero, a loop's step from zero, or made of such."""
    bare = kernel.bare(term)
    match bare:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _can_be_zero(left, kernel) and _can_be_zero(right, kernel)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _can_be_zero(left, kernel) or _can_be_zero(right, kernel)
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod()):
            return _can_be_zero(left, kernel)
    return (
        program_axis(bare, kernel) is not None
        or range_length(bare, kernel) is not None
        or _is_step(bare, kernel)
    )


def _is_step(term: ast.expr, kernel: SourceKernel) -> bool:
    """Whether it is what a loop counts up from zero: a name for it leads to the loop's range."""
    match kernel.operation(term):
        case Operation(name="range" | "static_range", operands=[_]):
            return True
        case Operation(name="range" | "static_range", operands=[start, *_]):
            return kernel.number(start) == 0
    return False


_FILLERS = frozenset({"offs", "off", "offset", "offsets", "idx", "index", "indices", "num", "range", "size"})
_AXES = dict.fromkeys(("row", "rows"), "row") | dict.fromkeys(("col", "cols", "column", "columns"), "column")
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
    for access in kernel.accesses:
        limits = list(bounds(access.mask, kernel))
        for bound in limits:
            if wrong := _of_other_axis(bound, limits, kernel) or _lacks_start(bound, access, kernel):
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
    pairs = [(_axis(bound.offsets), _axis(bound.size)) for _, bound in all_bounds(kernel)]
    return frozenset(offsets for offsets, size in pairs if offsets is not None and offsets == size)


def _is_size(name: str, kernel: SourceKernel) -> bool:
    """Whether nothing is done with a parameter that one would do with a pointer."""
    uses = [node for node in kernel.nodes if isinstance(node, ast.Name) and node.id == name]
    around = [kernel.parents.get(use) for use in uses]
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
    if not any(_has_block_for_each(axis, block, bound.size.id, launch) for launch in kernel.launches):
        return None
    size = bound.size.id
    return Fault(
        bound.comparison,
        f"The mask compares 0 to {block} - 1 with {size}, and the address starts at tl.program_id({axis}) * "
        f"{block}: the last program runs past {size}.",
        f"Compare tl.program_id({axis}) * {block} + tl.arange(0, {block}) with {size}.",
    )


def _has_block_for_each(axis: int, block: str, size: str, launch: LaunchSite) -> bool:
    """Whether the grid has cdiv(size, block) programs along the axis."""
    grid = grid_of(launch) or ()
    is_known = axis < len(grid) and size in launch.given
    return is_known and counts_blocks(grid[axis], block, launch, launch.given[size])
