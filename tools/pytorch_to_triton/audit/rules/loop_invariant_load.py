"""Loads that every iteration of a `for` runs, in loops that store to other pointers only."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.movement import accesses_in, bound_in, calls_unknown, names_in
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

_HEAD = """
@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, rows, n, B: tl.constexpr):
    i = tl.arange(0, B)
"""
BAD = (
    _HEAD
    + """
    for row in range(rows):
        w = tl.load(w_ptr + i, mask=i < n)
        x = tl.load(x_ptr + row * n + i, mask=i < n)
        tl.store(out_ptr + row * n + i, x * w, mask=i < n)
""",
)
GOOD = (
    # Waits for another program.
    _HEAD
    + """
    for row in range(rows):
        while tl.load(w_ptr, volatile=True) < row:
            pass
        tl.store(out_ptr + row, row)
""",
)


@kernel_rule("low", "memory access", BAD, GOOD)
def loop_invariant_load(kernel: SourceKernel) -> Iterator[Fault]:
    """A loop loads the same values in every iteration, and the compiler cannot move the load out of it.

    The compiler hoists a load whose address and mask stay the same, unless the loop stores something: for
    all it knows, the store changes what is loaded. So it is loaded again each time.

    Fix: load it once, before the loop.
    """
    for loop in kernel.nodes:
        if not isinstance(loop, ast.For) or calls_unknown(kernel, loop):
            continue
        accesses = accesses_in(kernel, loop)
        written = {access.pointer for access in accesses if access.writes}
        if not written or None in written or any(access.name.startswith("atomic") for access in accesses):
            continue
        changed = bound_in(loop)
        for access in accesses:
            if access.pointer in written or not _is_repeated(kernel, loop, access):
                continue
            if not names_in(access.call) & changed:
                stored = " and ".join(sorted(name for name in written if name))
                yield Fault(
                    access.call,
                    f"Every iteration loads the same values of {access.pointer}. The store to {stored} keeps "
                    "the compiler from loading them just once.",
                    f"Load them before the loop at line {loop.lineno}.",
                )


def _is_repeated(kernel: SourceKernel, loop: ast.For, access: KernelAccess) -> bool:
    """Whether a load stands in the loop itself, and each iteration runs it."""
    if access.writes or access.pointer is None or loop.iter in kernel.flow.around(access.call):
        return False
    if any(keyword.arg == "volatile" for keyword in access.call.keywords):
        return False
    for outer in kernel.flow.around(access.call):
        if outer is loop:
            return True
        if isinstance(outer, ast.For | ast.While | ast.If | ast.IfExp):
            return False
    return False
