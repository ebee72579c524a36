"""A place that comes from a loaded index is loaded, added to and stored back.

Where an index occurs twice, two programs (or two lanes of one) may load the same old value, and what one of
them added is lost. The embedding of a token that occurs twice gets one of its two gradients.

Fix: use tl.atomic_add, or let one program handle all entries of an index, sorted before.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.addresses import is_block, is_loaded, range_length
from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.programs import program_axes, program_ids
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

SEVERITY = "critical"
SUSPECTED = "low"
CONFIRMED_BY = ("race",)
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(ids_ptr, dy_ptr, dw_ptr, dim, B: tl.constexpr):
    token = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < dim
    dst = dw_ptr + tl.load(ids_ptr + token) * dim + cols
    total = tl.load(dst, mask=mask, other=0.0) + tl.load(dy_ptr + token * dim + cols, mask=mask)
    tl.store(dst, total, mask=mask)
""",
    """
@triton.jit
def kernel(x_ptr, counts_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    bins = tl.load(x_ptr + i, mask=i < n, other=0)
    count = tl.load(counts_ptr + bins, mask=i < n)
    count += 1
    tl.store(counts_ptr + bins, count, mask=i < n)
""",
)
GOOD = (
    # The lock lets one program in at a time.
    """
@triton.jit
def kernel(ids_ptr, dy_ptr, dw_ptr, locks_ptr, dim, B: tl.constexpr):
    cols = tl.arange(0, B)
    row = tl.load(ids_ptr + tl.program_id(0))
    while tl.atomic_cas(locks_ptr + row, 0, 1) == 1:
        pass
    dst = dw_ptr + row * dim + cols
    tl.store(dst, tl.load(dst) + tl.load(dy_ptr + tl.program_id(0) * dim + cols))
    tl.atomic_xchg(locks_ptr + row, 0)
""",
    # Where a sequence starts is loaded, and each program has its own steps of it.
    """
@triton.jit
def kernel(starts_ptr, x_ptr, y_ptr, B: tl.constexpr):
    start = tl.load(starts_ptr + tl.program_id(0))
    i = start + tl.program_id(1) * B + tl.arange(0, B) + tl.program_id(0)
    tl.store(y_ptr + i, tl.load(y_ptr + i) + tl.load(x_ptr + i))
""",
    # Rows that are changed in place are as a rule listed once.
    """
@triton.jit
def kernel(slots_ptr, x_ptr, dim, B: tl.constexpr):
    at = x_ptr + tl.load(slots_ptr + tl.program_id(0)) * dim + tl.arange(0, B)
    tl.store(at, tl.load(at) * 0.5)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Stores of a sum with what was loaded there, where only a loaded index tells programs or lanes apart."""
    stores = [access for access in kernel.accesses if access.name == "store"]
    if any(access.name in ("atomic_cas", "atomic_xchg") for access in kernel.accesses):
        return
    for access in stores:
        index = _shared_index(access, kernel) if _accumulates(access, kernel) else None
        if index is not None:
            yield Fault(
                access.call,
                f"The place in {access.pointer} comes from {ast.unparse(index)}: where an index occurs "
                "twice, the loads and stores of both overlap, and one of the two sums is lost.",
                f"Use tl.atomic_add on {access.pointer}.",
            )


def _accumulates(access: KernelAccess, kernel: SourceKernel) -> bool:
    """Whether something is added to, or taken off, what the same place holds."""
    found = values(kernel)
    total = found.bare(access.value) if access.value is not None else None
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Add | ast.Sub):
        return False
    loads = [one.call for one in kernel.accesses if one.name == "load" and _is_same(one, access, kernel)]
    return any(found.bare(side) in loads for side in (total.left, total.right))


def _is_same(one: KernelAccess, other: KernelAccess, kernel: SourceKernel) -> bool:
    return one.pointer == other.pointer and values(kernel).same(one.address, other.address)


def _shared_index(access: KernelAccess, kernel: SourceKernel) -> ast.expr | None:
    """A loaded index in the address that alone differs between programs, or between lanes."""
    own = kernel.flow.origins(access.address, stop=lambda node: is_loaded(node, kernel))
    loads = [node for node in own if isinstance(node, ast.Call) and is_loaded(node, kernel)]
    direct = {axis for call, axis in program_ids(kernel) if call in own}
    is_own_block = any(isinstance(node, ast.expr) and range_length(node, kernel) for node in own)
    for load in sorted(loads, key=lambda one: one.lineno):
        if program_axes(kernel, load) - direct or (is_block(load, kernel) and not is_own_block):
            return load
    return None
