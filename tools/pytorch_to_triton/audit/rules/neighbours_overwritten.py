"""Stores to a tensor from which loads take what lies a step beside, in another program's part."""

import ast
from collections.abc import Iterator, Sequence
from itertools import product

from pytorch_to_triton.audit.analysis.addresses import conjuncts
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.polynomials import Monomial, Polynomial, difference, polynomial
from pytorch_to_triton.audit.analysis.programs import is_wide, program_ids
from pytorch_to_triton.audit.call_arguments import argument, literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_TL = "triton.language."
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    left = tl.load({0} + i - 1, mask=(i > 0) & (i < n), other=0.0)
    right = tl.load({0} + i + 1, mask=i + 1 < n, other=0.0)
    tl.store({1} + i, (left + right) / 2, mask={2})
"""
_RUN = """
def run(x):
    y = x.clone()
    kernel[({0},)](y, {1}, x.numel(), B={2})
    return y
"""
_BLOCKS = "triton.cdiv(x.numel(), 512)"
BAD = (_KERNEL.format("x_ptr", "x_ptr", "i < n") + _RUN.format(_BLOCKS, "y", 512),)
GOOD = (
    # Pairs that each program has to itself.
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    i = 2 * (tl.program_id(0) * B + tl.arange(0, B))
    even = tl.load(x_ptr + i, mask=i < n)
    odd = tl.load(x_ptr + i + 1, mask=i < n)
    tl.store(x_ptr + i, odd, mask=i < n)
    tl.store(x_ptr + i + 1, even, mask=i < n)

def run(x):
    kernel[(triton.cdiv(x.numel(), 512),)](x, x.numel(), B=256)
""",
)


@kernel_rule("high", "correctness", BAD, GOOD)
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
    found: set[ast.Call] = set()
    loads = [one for one in kernel.accesses if one.name == "load" and not kernel.flow.conditions(one.call)]
    stores = [one for one in kernel.accesses if one.name == "store" and _is_of_all_lanes(one, kernel)]
    for store, load in product(stores, loads):
        axis = _crossed(load, store, axes, kernel) if _is_same_tensor(load, store, kernel) else None
        if axis is not None and store.call not in found:
            found.add(store.call)
            yield Fault(
                store.call,
                f"Line {load.call.lineno} loads elements beside a program's own from {load.pointer}, and "
                f"this replaces them: programs along axis {axis} read a neighbor's old values or new ones.",
                "Store to another tensor.",
            )


def _waits(kernel: SourceKernel) -> bool:
    """Whether programs may agree on an order, by atomics or by flags."""
    hidden = (f"{_TL}debug_barrier", f"{_TL}inline_asm_elementwise")
    return (
        any(one.name.startswith("atomic") for one in kernel.accesses)
        or any(isinstance(node, ast.While) for node in kernel.nodes)
        or any(path in hidden for path, _ in kernel.calls())
    )


def _is_of_all_lanes(store: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether its mask only bounds it, and no branch decides for it."""
    parts = conjuncts(store.mask, kernel) if store.mask else ()
    order = ast.Lt | ast.LtE | ast.Gt | ast.GtE
    return not kernel.flow.conditions(store.call) and all(
        isinstance(part, ast.Compare) and all(isinstance(op, order) for op in part.ops) for part in parts
    )


def _is_same_tensor(load: KernelAccess, store: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether both are through one pointer, or a launch passes one tensor for both."""
    if load.pointer is None or store.pointer is None:
        return False
    if load.pointer == store.pointer:
        return True
    for launch in kernel.launches:
        match launch.given(kernel).get(load.pointer), launch.given(kernel).get(store.pointer):
            case ast.Name(id=one), ast.Name(id=other) if one == other:
                return True
    return False


def _crossed(
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
    known = values(kernel)
    own = known.key(program)
    if place.get(_times(unit, own)) == 1:
        return True
    for path, call in kernel.calls():
        end = argument(call, 1, "end") if path == f"{_TL}arange" else None
        if end is None or place.get(_times(unit, known.key(call))) != 1:
            continue
        length = literal_integer(known.resolved(end))
        start = place.get(_times(unit, own) if length else _times(unit, own, known.key(end)))
        if start == (length or 1):
            return True
    return False


def _times(unit: Monomial, *keys: int) -> Monomial:
    return tuple(sorted((*unit, *keys)))
