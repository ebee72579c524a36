"""Loads of what a store before has written in other lanes, or the one thread that stores a scalar."""

import ast
from collections.abc import Iterator
from itertools import product

from pytorch_to_triton.audit.analysis.addresses import bounds, is_block
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.movement import calls_unknown, run_between
from pytorch_to_triton.audit.analysis.polynomials import Monomial, Polynomial, difference, polynomial
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, scratch_ptr, out_ptr, stride, N, shift, B: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < N
    tl.store(scratch_ptr + row * stride + cols, tl.load(x_ptr + row * stride + cols, mask=mask), mask=mask)
    {}
    tl.store(out_ptr + row * stride + cols, y, mask=mask)
"""
_SUMS = """
@triton.jit
def kernel(x_ptr, sums_ptr, out_ptr, M, N, ROWS: tl.constexpr, B: tl.constexpr):
    cols = tl.arange(0, B)
    for row in range(0, M):
        tl.store(sums_ptr + row, tl.sum(tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)))
    {}
    rows = tl.arange(0, ROWS)
    sums = tl.load(sums_ptr + rows, mask=rows < M, other=0.0)
    tl.store(out_ptr + rows, sums / tl.sum(sums), mask=rows < M)
"""
BAD = (
    _KERNEL.format("y = tl.load(scratch_ptr + row * stride + (cols + shift) % N, mask=mask)"),
    # One thread stores each sum, and others read it.
    _SUMS.format(""),
)
GOOD = (
    # The same lanes.
    _KERNEL.format("y = tl.load(scratch_ptr + row * stride + cols, mask=mask)"),
    # One warp keeps in step.
    _KERNEL.format("y = tl.load(scratch_ptr + row * stride + (cols + shift) % N, mask=mask)")
    + "\ndef run(x, y):\n    kernel[(8,)](x, y, y, x.stride(0), x.shape[1], 1, B=32, num_warps=1)\n",
)


@kernel_rule("high", "correctness", BAD, GOOD)
def read_back_without_barrier(kernel: SourceKernel) -> Iterator[Fault]:
    """A program stores values and reads them back in other lanes, with no barrier between.

    Other threads of the program store what this thread reads: without tl.debug_barrier() it may read before
    they have stored.

    Fix: put tl.debug_barrier() between the two, or change the order in registers, with tl.gather or
    tl.flip.
    """
    stores = [one for one in kernel.accesses if one.name == "store" and one.pointer]
    loads = [one for one in kernel.accesses if one.name == "load"]
    for store, load in product(stores, loads):
        between = run_between(kernel, store.call, load.call) if load.pointer == store.pointer else None
        if between is None or any(_waits(one, kernel) for one in between):
            continue
        if _is_permuted(load, store, kernel) and not _has_one_warp(kernel):
            yield Fault(
                load.call,
                f"This reads what line {store.call.lineno} has stored to {store.pointer}, in other lanes: "
                "other threads stored it, and no barrier makes sure that they have.",
                "Put tl.debug_barrier() between the store and this load.",
            )
            return


def _waits(statement: ast.stmt, kernel: SourceKernel) -> bool:
    atomics = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return calls_unknown(kernel, statement) or any(
        ".atomic_" in (kernel.scope.path(call.func) or "") for call in atomics
    )


def _is_permuted(load: KernelAccess, store: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether one range of lanes of the store stands in another order in the load, and all else is alike."""
    one, other = (polynomial(access.address, kernel, access.pointer) for access in (load, store))
    if one is None or other is None:
        return False
    shift = _without_walks(difference(one, other), kernel)
    lanes = [monomial for monomial in _ranges(kernel) if shift.get(monomial)]
    if len(lanes) != 1:
        return False
    if abs(shift[lanes[0]]) == len(shift) == 1 and (
        not is_block(load.address, kernel) or not is_block(store.address, kernel)
    ):
        return True
    if other.get(lanes[0]) != 1:
        return False
    rest = {monomial: many for monomial, many in shift.items() if monomial != lanes[0]}
    if shift[lanes[0]] == -1:
        return len(rest) == 1 and next(iter(rest)) in _permutations(lanes[0], store, kernel)
    # N - 1 - lanes less lanes.
    sizes = {(values(kernel).key(bound.size),) for bound in bounds(store.mask, kernel)}
    reversed_by = [{size: 1, (): -1} for size in sizes]
    return shift[lanes[0]] == -2 and rest in reversed_by


def _without_walks(shift: Polynomial, kernel: SourceKernel) -> Polynomial:
    """Without the indices of loops: tiles and rows are walked in any order."""
    loops = (node.target for node in kernel.nodes if isinstance(node, ast.For))
    indices = {target.id for target in loops if isinstance(target, ast.Name)}
    uses = (node for node in kernel.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    walks = {(values(kernel).key(use),) for use in uses if use.id in indices}
    return {monomial: many for monomial, many in shift.items() if monomial not in walks}


def _ranges(kernel: SourceKernel) -> Iterator[Monomial]:
    known = values(kernel)
    yield from {(known.key(call.call),): None for call in known.operations if call.name == "arange"}


def _permutations(lanes: Monomial, store: KernelAccess, kernel: SourceKernel) -> Iterator[Monomial]:
    """`(lanes + shift) % N` of the N that the store is bound by, and `lanes ^ 1`."""
    known = values(kernel)
    sizes = {known.key(bound.size) for bound in bounds(store.mask, kernel)}
    for node in known.expressions:
        match node:
            case ast.BinOp(left=left, op=ast.Mod(), right=right) if known.key(right) in sizes:
                parts = polynomial(left, kernel)
                if parts is not None and parts.get(lanes) and len(parts) > 1:
                    yield (known.key(node),)
            case ast.BinOp(left=left, op=ast.BitXor(), right=right) if (known.key(left),) == lanes:
                if literal_integer(right):
                    yield (known.key(node),)


def _has_one_warp(kernel: SourceKernel) -> bool:
    """Whether a launch or the autotuner asks for a single warp."""
    warps = [launch.options.get("num_warps") for launch in kernel.launches]
    return any(literal_integer(one) == 1 for one in warps)
