"""Reads of what others write, with nothing that keeps them in order, and barriers that order nothing."""

import ast
from collections.abc import Iterator, Sequence
from itertools import product

from pytorch_to_triton.audit.analysis.addresses import bounds, conjuncts, is_wide, program_ids
from pytorch_to_triton.audit.analysis.movement import (
    Monomial,
    Polynomial,
    calls_unknown,
    difference,
    polynomial,
    run_between,
)
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.examples import LANES, ROW, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_BESIDE = jit(
    LANES,
    "left = tl.load(x_ptr + i - 1, mask=(i > 0) & (i < n), other=0.0)",
    "tl.store(out_ptr + i, left, mask=i < n)",
)
_PAIRS = jit(
    "i = 2 * (tl.program_id(0) * B + tl.arange(0, B))",
    "even, odd = tl.load(x_ptr + i, mask=i < n), tl.load(x_ptr + i + 1, mask=i < n)",
    "tl.store(x_ptr + i, odd, mask=i < n)",
    "tl.store(x_ptr + i + 1, even, mask=i < n)",
)
_IN_PLACE = run("kernel[(triton.cdiv(x.numel(), 512),)](x, x, x.numel(), B=512)")


@kernel_rule(
    "high",
    "correctness",
    bad=(_BESIDE + _IN_PLACE,),
    # Pairs that each program has to itself.
    good=(_PAIRS + _IN_PLACE,),
)
def neighbours_overwritten(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel stores in place what neighboring programs still read.

    Each program loads elements beside its own, and stores its own to the same tensor. Programs run in any
    order: one may read a neighbor's element before or after it is replaced.

    Fix: store to another tensor.
    """
    if _waits(kernel):
        return
    axes = [
        (call, axis)
        for call, axis in program_ids(kernel)
        if axis is not None and any(is_wide(axis, launch) for launch in kernel.launches)
    ]
    loads = [load for load in kernel.loads if not kernel.conditions(load.call)]
    stores = [store for store in kernel.stores if _is_of_all_lanes(store, kernel)]
    for store, load in product(stores, loads):
        axis = _axis_crossed(load, store, axes, kernel) if _is_same_tensor(load, store, kernel) else None
        if axis is not None:
            yield Fault(
                store.call,
                f"Line {load.call.lineno} loads elements beside a program's own from {load.pointer}, and "
                f"this replaces them: programs along axis {axis} read a neighbor's old values or new ones.",
                "Store to another tensor.",
            )


def _waits(kernel: SourceKernel) -> bool:
    """Whether programs may agree on an order, by atomics or by flags."""
    return (
        any(access.name.startswith("atomic") for access in kernel.accesses)
        or any(isinstance(node, ast.While) for node in kernel.nodes)
        or any(kernel.calls("debug_barrier", "inline_asm_elementwise"))
    )


def _is_of_all_lanes(store: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether its mask only bounds it, and no branch decides for it."""
    parts = conjuncts(store.mask, kernel) if store.mask else ()
    order = ast.Lt | ast.LtE | ast.Gt | ast.GtE
    return not kernel.conditions(store.call) and all(
        isinstance(part, ast.Compare) and all(isinstance(op, order) for op in part.ops) for part in parts
    )


def _is_same_tensor(load: KernelAccess, store: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether both are through one pointer, or a launch passes one tensor for both."""
    if load.pointer is None or store.pointer is None:
        return False
    if load.pointer == store.pointer:
        return True
    for launch in kernel.launches:
        match launch.given.get(load.pointer), launch.given.get(store.pointer):
            case ast.Name(id=one), ast.Name(id=other) if one == other:
                return True
    return False


def _axis_crossed(
    load: KernelAccess, store: KernelAccess, axes: Sequence[tuple[ast.Call, int]], kernel: SourceKernel
) -> int | None:
    """The axis of the grid along which a load reaches into a neighbor's part of what is stored."""
    one, other = (polynomial(access.address, kernel, access.pointer) for access in (load, store))
    shift = difference(one, other) if one is not None and other is not None else {}
    if other is None or len(shift) != 1:
        return None
    ((unit, _),) = shift.items()
    return next((axis for call, axis in axes if _is_parted(other, unit, call, kernel)), None)


def _is_parted(place: Polynomial, unit: Monomial, program: ast.Call, kernel: SourceKernel) -> bool:
    """Whether a place is `(program * B + tl.arange(0, B)) * unit`, or `program * unit`, and more."""
    own = kernel.key(program)
    if place.get(_times(unit, own)) == 1:
        return True
    for lanes in kernel.calls("arange"):
        end = lanes.option(1, "end")
        if end is None or place.get(_times(unit, kernel.key(lanes.call))) != 1:
            continue
        length = literal_integer(kernel.resolved(end))
        start = place.get(_times(unit, own) if length else _times(unit, own, kernel.key(end)))
        if start == (length or 1):
            return True
    return False


def _times(unit: Monomial, *keys: int) -> Monomial:
    return tuple(sorted((*unit, *keys)))


def _read_back(lanes: str) -> str:
    store = "tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)"
    return jit(
        ROW, store, f"y = tl.load(out_ptr + {lanes}, mask=i < n)", "tl.store(x_ptr + i, y, mask=i < n)"
    )


_SUMS = jit(
    ROW,
    "for row in range(0, n):",
    "    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)))",
    "sums = tl.load(out_ptr + i, mask=i < n, other=0.0)",
)


@kernel_rule(
    "high",
    "correctness",
    # One thread stores each sum, and others read it.
    bad=(_read_back("(i + 1) % n"), _SUMS),
    good=(
        # The same lanes.
        _read_back("i"),
    ),
)
def read_back_without_barrier(kernel: SourceKernel) -> Iterator[Fault]:
    """A program stores values and reads them back in other lanes, with no barrier between.

    Other threads of the program store what this thread reads: without tl.debug_barrier() it may read before
    they have stored.

    Fix: put tl.debug_barrier() between the two, or change the order in registers, with tl.gather or
    tl.flip.
    """
    stores = [store for store in kernel.stores if store.pointer]
    warps = (launch.options.get("num_warps") for launch in kernel.launches)
    has_one_warp = any(literal_integer(warp) == 1 for warp in warps)
    for store, load in product(stores, kernel.loads):
        between = run_between(kernel, store.call, load.call) if load.pointer == store.pointer else None
        if between is None or any(_keeps_order(statement, kernel) for statement in between):
            continue
        if _is_permuted(load, store, kernel) and not has_one_warp:
            yield Fault(
                load.call,
                f"This reads what line {store.call.lineno} has stored to {store.pointer}, in other lanes: "
                "other threads stored it, and no barrier makes sure that they have.",
                "Put tl.debug_barrier() between the store and this load.",
            )
            return


def _keeps_order(statement: ast.stmt, kernel: SourceKernel) -> bool:
    calls = (operation for node in ast.walk(statement) if (operation := kernel.operation(node)))
    return calls_unknown(kernel, statement) or any(call.name.startswith("atomic_") for call in calls)


def _is_permuted(load: KernelAccess, store: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether one range of lanes of the store stands in another order in the load, and all else is alike."""
    one, other = (polynomial(access.address, kernel, access.pointer) for access in (load, store))
    if one is None or other is None:
        return False
    shift = _without_walks(difference(one, other), kernel)
    ranges = {(kernel.key(lanes.call),): None for lanes in kernel.calls("arange")}
    lanes = [monomial for monomial in ranges if shift.get(monomial)]
    if len(lanes) != 1:
        return False
    if abs(shift[lanes[0]]) == len(shift) == 1 and (
        not kernel.is_block(load.address) or not kernel.is_block(store.address)
    ):
        return True
    if other.get(lanes[0]) != 1:
        return False
    rest = {monomial: many for monomial, many in shift.items() if monomial != lanes[0]}
    if shift[lanes[0]] == -1:
        return len(rest) == 1 and next(iter(rest)) in _permutations(lanes[0], store, kernel)
    # N - 1 - lanes less lanes.
    sizes = {(kernel.key(bound.size),) for bound in bounds(store.mask, kernel)}
    reversed_by = [{size: 1, (): -1} for size in sizes]
    return shift[lanes[0]] == -2 and rest in reversed_by


def _without_walks(shift: Polynomial, kernel: SourceKernel) -> Polynomial:
    """Without the indices of loops: tiles and rows are walked in any order."""
    indices = {ast.unparse(node.target) for node in kernel.nodes if isinstance(node, ast.For)}
    uses = (node for node in kernel.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    walks = {(kernel.key(use),) for use in uses if use.id in indices}
    return {monomial: many for monomial, many in shift.items() if monomial not in walks}


def _permutations(lanes: Monomial, store: KernelAccess, kernel: SourceKernel) -> Iterator[Monomial]:
    """`(lanes + shift) % N` of the N that the store is bound by, and `lanes ^ 1`."""
    sizes = {kernel.key(bound.size) for bound in bounds(store.mask, kernel)}
    for node in kernel.expressions:
        match node:
            case ast.BinOp(left=left, op=ast.Mod(), right=right) if kernel.key(right) in sizes:
                parts = polynomial(left, kernel)
                if parts is not None and parts.get(lanes) and len(parts) > 1:
                    yield (kernel.key(node),)
            case ast.BinOp(left=left, op=ast.BitXor(), right=right) if (kernel.key(left),) == lanes:
                if literal_integer(right):
                    yield (kernel.key(node),)


_RUN = run("kernel[(1,)](x, out, x.numel(), B=64)")
_BARRIER = "tl.debug_barrier()"


@kernel_rule(
    "info",
    "performance",
    bad=(jit(ROW, "x = tl.load(x_ptr + i)", _BARRIER, "tl.store(out_ptr + i, x)") + _RUN,),
    good=(
        jit(
            "for k in range(n):",
            "    x = tl.load(x_ptr + k)",
            f"    {_BARRIER}",
            "    tl.store(x_ptr + k + 1, x)",
        )
        + _RUN,
        jit("prepare(x_ptr)", _BARRIER, "tl.store(x_ptr, tl.load(x_ptr + 1))") + _RUN,
    ),
)
def barrier_without_purpose(kernel: SourceKernel) -> Iterator[Fault]:
    """tl.debug_barrier() stands between accesses that have nothing to do with each other.

    A barrier lets the warps of one program wait for each other, so that what one stored can be loaded by
    another. Where no memory is accessed on both sides of it, it only costs time; it never synchronizes
    different programs.

    Fix: delete it; where programs have to wait for each other, launch a second kernel.
    """
    barriers = [operation.call for operation in kernel.calls("debug_barrier")]
    others = ({*kernel.nodes} - {*barriers}) if barriers and kernel.launches else set()
    if not others or any(isinstance(node, ast.Call) and calls_unknown(kernel, node) for node in others):
        return
    for barrier in barriers:
        if kernel.loops(barrier):
            continue
        before = [access for access in kernel.accesses if access.call.lineno < barrier.lineno]
        after = [access for access in kernel.accesses if access.call.lineno > barrier.lineno]
        if not any(_may_conflict(one, other) for one in before for other in after):
            yield Fault(
                barrier,
                f"Nothing that {kernel.name} accesses before this barrier is accessed after it, too.",
                "Delete the barrier.",
            )


def _may_conflict(one: KernelAccess, other: KernelAccess) -> bool:
    """Whether two accesses may meet in memory and one of them writes."""
    same = one.pointer is None or other.pointer is None or one.pointer == other.pointer
    return same and (one.writes or other.writes)
