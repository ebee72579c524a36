"""Places that several programs write, blocks of theirs that overlap, and random numbers that they share."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.analysis.addresses import (
    addends,
    counts_blocks,
    grid_of,
    is_opaque,
    is_updated,
    program_axes,
    program_axis,
    program_ids,
    range_length,
    shared_axes,
    wide_axes,
)
from pytorch_to_triton.audit.call_arguments import argument
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.operations import Operation
from pytorch_to_triton.audit.rule import Unconfirmed, kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_RUN = run("kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), B=64)")
_ID = "row = tl.program_id(0)"
_PART = "part = tl.sum(tl.load(x_ptr + row * B + tl.arange(0, B)))"
_LOCK = "while tl.atomic_cas(x_ptr, 0, 1) == 1:"
_DST = "dst = out_ptr + tl.load(x_ptr + row) * n + tl.arange(0, B)"


@kernel_rule(
    "high",
    "correctness",
    bad=(jit(_ID, _PART, "tl.store(out_ptr, part)") + _RUN,),
    good=(jit(_ID, "out_ptr += tl.load(x_ptr + row)", "tl.store(out_ptr, tl.load(x_ptr + row))") + _RUN,),
)
def same_place_in_all_programs(kernel: SourceKernel) -> Iterator[Fault]:
    """Every program of a grid stores its own result at the same place.

    The programs run in any order, and the last store stays: the results of all others are lost.

    Fix: give each program its own place by its tl.program_id, or combine the results with tl.atomic_add.
    """
    for access, axis in _shared_stores(kernel):
        if not is_updated(access, kernel):
            yield Fault(
                access.call,
                f"The value depends on tl.program_id({axis}), and its place in {access.pointer} does not: "
                "all programs along this axis write there, and one result stays.",
                f"Add an offset made of tl.program_id({axis}) to {access.pointer}, or use an atomic.",
            )


@kernel_rule(
    "critical",
    "correctness",
    bad=(jit(_ID, _PART, "tl.store(out_ptr, tl.load(out_ptr) + part)") + _RUN,),
    good=(
        # The lock lets one program in at a time.
        jit(_ID, _DST, _LOCK, "    pass", "tl.store(dst, tl.load(dst) + tl.load(x_ptr + row))") + _RUN,
        # Where a sequence starts is loaded, and each program has its own steps of it.
        jit(_ID, _DST, "dst += row", "tl.store(dst, tl.load(dst) + tl.load(x_ptr + row))") + _RUN,
    ),
    suspected=Unconfirmed("low", ("race",)),
)
def unguarded_read_modify_write(kernel: SourceKernel) -> Iterator[Fault]:
    """Programs that share a place load from it, change the value and store it back.

    Between one program's load and its store others do the same, and what they added is lost. How much,
    differs from run to run. Where the place comes from a loaded index, it is shared wherever an index occurs
    twice: the embedding of a token that occurs twice gets one of its two gradients.

    Fix: use tl.atomic_add (or tl.atomic_max and the like), or give each program its own place and sum up
    later.
    """
    for access, axis in _shared_stores(kernel):
        if is_updated(access, kernel):
            yield Fault(
                access.call,
                f"All programs along axis {axis} load from the same place in {access.pointer}, change the "
                "value and store it: updates of programs that run at the same time are lost.",
                f"Use tl.atomic_add on {access.pointer}, or store partial results by tl.program_id({axis}).",
                certain=True,
            )
    if any(access.name in ("atomic_cas", "atomic_xchg") for access in kernel.accesses):
        return
    for access in kernel.accesses:
        index = _shared_index(access, kernel) if _accumulates(access, kernel) else None
        if index is not None:
            yield Fault(
                access.call,
                f"The place in {access.pointer} comes from {ast.unparse(index)}: where an index occurs "
                "twice, the loads and stores of both overlap, and one of the two sums is lost.",
                f"Use tl.atomic_add on {access.pointer}.",
            )


def _shared_stores(kernel: SourceKernel) -> Iterator[tuple[KernelAccess, int]]:
    """Each store at a place that all programs along an axis of the grid share, with the axis."""
    for store in kernel.stores:
        yield from ((store, axis) for axis in sorted(shared_axes(store, kernel)))


def _accumulates(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether it stores a sum or a difference with what the same place holds."""
    total = kernel.bare(access.value) if access.value is not None and access.name == "store" else None
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Add | ast.Sub):
        return False
    return is_updated(access, kernel) and any(
        isinstance(kernel.bare(side), ast.Call) and kernel.is_loaded(kernel.bare(side))
        for side in (total.left, total.right)
    )


def _shared_index(access: KernelAccess, kernel: SourceKernel) -> ast.expr | None:
    """A loaded index in the address that alone differs between programs, or between lanes."""
    own = kernel.direct_origins(access.address)
    loads = [node for node in own if isinstance(node, ast.Call) and kernel.is_loaded(node)]
    direct = {axis for call, axis in program_ids(kernel) if call in own}
    is_own_block = any(isinstance(node, ast.expr) and range_length(node, kernel) for node in own)
    for load in sorted(loads, key=lambda one: one.lineno):
        if program_axes(kernel, load) - direct or (kernel.is_block(load) and not is_own_block):
            return load
    return None


_START = "i = tl.program_id(0) + tl.arange(0, B)"
_WINDOW = jit(_START, "tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + i)))")


@kernel_rule(
    "high",
    "correctness",
    bad=(jit(_START, "tl.store(out_ptr + i, 0.0, mask=i < n)"),),
    good=(_WINDOW + run("kernel[(len(x) - 7,)](x, out, len(x), B=8)"),),
)
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
    return any(counts_blocks(grid[axis], length, launch) for grid, launch in grids if axis < len(grid))


_DRAWING = ("rand", "randn", "randint", "rand4x", "randn4x", "randint4x")
_DEEPEST = 3
"""Functions that call each other."""


def _dropout(keep: str) -> str:
    cols = LANES.replace("i =", "cols =").replace("(0) *", "(1) *")
    kept = f"keep = {keep}", "tl.store(out_ptr + i, tl.where(keep, tl.load(x_ptr + i), 0.0), mask=cols < n)"
    launch = "kernel[(M, triton.cdiv(N, 64))](x, out, N, B=64)"
    return jit(cols, "i = tl.program_id(0) * n + cols", *kept) + run("M, N = x.shape", launch)


_NOISE = jit("return tl.rand(seed, at) > 0.5", takes="seed, at").replace("kernel", "noise")


@dataclass(frozen=True, eq=False)
class Draw:
    """A call that draws random numbers, itself or in a function that it calls."""

    call: ast.Call
    decided_by: tuple[ast.expr, ...]
    """The arguments that seeds and offsets are made from."""


@kernel_rule(
    "high",
    "correctness",
    bad=(_dropout("tl.rand(7, cols) > 0.5"),),
    good=(_NOISE + _dropout("noise(7, i)"),),
)
def shared_random_numbers(kernel: SourceKernel) -> Iterator[Fault]:
    """Several programs generate the same random numbers.

    tl.rand and its kind give the same number for the same seed and offset, whichever program asks. With
    offsets that are the same in many programs, every row gets the same dropout mask.

    Fix: use as offset the place of the element in the whole tensor: tl.rand(seed, row * n_cols + cols).
    """
    wide = wide_axes(kernel)
    for draw in _draws(kernel, depth=_DEEPEST) if wide else ():
        if is_opaque(kernel, *draw.decided_by):
            continue
        shared = sorted(wide & _stored_by(draw.call, kernel) - program_axes(kernel, *draw.decided_by))
        if shared:
            yield Fault(
                draw.call,
                f"The seed and the offset of {ast.unparse(draw.call)} do not depend on tl.program_id"
                f"({shared[0]}): all programs along this axis generate the same numbers.",
                f"Make the offset from tl.program_id({shared[0]}), too: the place of each element in the "
                "whole tensor.",
            )


def _draws(kernel: SourceKernel, *, depth: int) -> Iterator[Draw]:
    for node in kernel.nodes:
        match node, kernel.operation(node):
            case ast.Call(), Operation(name=name) as draw if name in _DRAWING:
                decided_by = (draw.option(0, "seed"), draw.option(1, "offset"))
                if all(decided_by):
                    yield Draw(node, tuple(value for value in decided_by if value))
            case ast.Call(func=ast.Name(id=name)), _ if depth > 0:
                called = kernel.file.kernel_named(name, kernel.scope)
                if called is not None and called is not kernel:
                    yield from _draws_of_call(node, called, depth=depth - 1)


def _draws_of_call(call: ast.Call, called: SourceKernel, *, depth: int) -> Iterator[Draw]:
    """What a function of the file draws by its arguments alone."""
    for inner in _draws(called, depth=depth):
        if is_opaque(called, *inner.decided_by) or any(
            program_axes(called, value) for value in inner.decided_by
        ):
            continue
        names = called.parameters_in(*inner.decided_by)
        given = [argument(call, place, name) for place, name in enumerate(called.parameters) if name in names]
        if all(given):
            yield Draw(call, tuple(passed for passed in given if passed))


def _stored_by(call: ast.Call, kernel: SourceKernel) -> frozenset[int]:
    """The grid's axes whose program ids tell apart the places where what was drawn is stored."""
    axes = [
        program_axes(kernel, access.address)
        for access in kernel.accesses
        if access.value is not None and call in kernel.origins(access.value)
    ]
    return frozenset[int]().union(*axes)
