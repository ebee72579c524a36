"""A program stores a block and reads it back in another order, with no barrier between.

Other threads of the program store what this thread reads: without tl.debug_barrier() it may read before they
have stored.

Instead, put tl.debug_barrier() between the two, or change the order in registers, with tl.gather or tl.flip.
"""

import ast
from collections.abc import Iterator
from itertools import product

from pytorch_to_triton.audit.analysis.addresses import bounds
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.movement import calls_unknown, statements_between
from pytorch_to_triton.audit.analysis.polynomials import Monomial, difference, polynomial
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

SEVERITY = "high"
CATEGORY = "correctness"
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
BAD = (
    _KERNEL.format("y = tl.load(scratch_ptr + row * stride + (cols + shift) % N, mask=mask)"),
    _KERNEL.format("y = tl.load(scratch_ptr + row * stride + N - 1 - cols, mask=mask)"),
    _KERNEL.format("base = scratch_ptr + row * stride\n    y = tl.load(base + (cols ^ 1), mask=mask)"),
)
GOOD = (
    _KERNEL.format(
        "tl.debug_barrier()\n    y = tl.load(scratch_ptr + row * stride + (cols + shift) % N, mask=mask)"
    ),
    # The same lanes.
    _KERNEL.format("y = tl.load(scratch_ptr + row * stride + cols, mask=mask)"),
    # What was not stored here.
    _KERNEL.format("y = tl.load(scratch_ptr + row * stride + N + cols, mask=mask)"),
    _KERNEL.format("y = tl.load(x_ptr + row * stride + (cols + shift) % N, mask=mask)"),
    # One warp keeps in step.
    _KERNEL.format("y = tl.load(scratch_ptr + row * stride + (cols + shift) % N, mask=mask)")
    + "\ndef run(x, y):\n    kernel[(8,)](x, y, y, x.stride(0), x.shape[1], 1, B=32, num_warps=1)\n",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Loads of a permutation of the lanes that a store just above has written."""
    stores = [one for one in kernel.accesses if one.name == "store" and one.pointer]
    loads = [one for one in kernel.accesses if one.name == "load"]
    for store, load in product(stores, loads):
        between = statements_between(kernel, store.call, load.call) if load.pointer == store.pointer else None
        if not between or len(between) < 2 or any(_waits(one, kernel) for one in between[:-1]):
            continue
        if _is_permuted(load, store, kernel) and not _has_one_warp(kernel):
            yield Fault(
                load.call,
                f"This reads what line {store.call.lineno} has stored to {store.pointer}, in another order: "
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
    shift = difference(one, other)
    lanes = [monomial for monomial in _ranges(kernel) if other.get(monomial) == 1 and shift.get(monomial)]
    if len(lanes) != 1:
        return False
    rest = {monomial: many for monomial, many in shift.items() if monomial != lanes[0]}
    if shift[lanes[0]] == -1:
        return len(rest) == 1 and next(iter(rest)) in _permutations(lanes[0], store, kernel)
    # N - 1 - lanes less lanes.
    sizes = {(values(kernel).key(bound.size),) for bound in bounds(store.mask, kernel)}
    reversed_by = [{size: 1, (): -1} for size in sizes]
    return shift[lanes[0]] == -2 and rest in reversed_by


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
