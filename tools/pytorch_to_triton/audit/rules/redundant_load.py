"""A kernel loads the same values twice, and the compiler cannot make one load of them.

The compiler merges two loads of one address and mask, unless a store stands between them, which may change
what is there, or their `other` differs. Then the values travel from memory twice.

Instead, keep the values of the first load in a variable; put another fill value in with tl.where.
"""

import ast
from collections.abc import Iterator, Sequence
from itertools import combinations

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.movement import (
    accesses_in,
    bound_in,
    calls_unknown,
    names_in,
    statements_between,
)
from pytorch_to_triton.audit.source import Access, Kernel

SEVERITY = "low"
CATEGORY = "memory access"
_HEAD = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
"""
BAD = (
    _HEAD
    + """
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2, mask=i < n)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 3, mask=i < n)
""",
    _HEAD
    + """
    largest = tl.max(tl.load(x_ptr + i, mask=i < n, other=float("-inf")))
    total = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0))
    tl.store(out_ptr, largest + total)
""",
)
GOOD = (
    _HEAD
    + """
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2, mask=i < n)
    tl.store(y_ptr + i, x * 3, mask=i < n)
""",
    # The compiler merges these.
    _HEAD
    + """
    double = tl.load(x_ptr + i, mask=i < n) * 2
    tl.store(out_ptr + i, double + tl.load(x_ptr + i, mask=i < n), mask=i < n)
""",
    # Another place by then.
    _HEAD
    + """
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x)
    i += n
    tl.store(y_ptr + i, tl.load(x_ptr + i))
""",
    # What is there has changed.
    _HEAD
    + """
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, x * 2)
    tl.debug_barrier()
    tl.store(y_ptr + i, tl.load(x_ptr + i))
""",
    # Only one of the two runs.
    _HEAD
    + """
    if n > 100:
        tl.store(out_ptr + i, tl.load(x_ptr + i))
    else:
        tl.store(y_ptr + i, tl.load(x_ptr + i))
""",
)


def check(kernel: Kernel) -> Iterator[Fault]:
    """Pairs of loads in one list of statements, each second one once."""
    told: set[ast.Call] = set()
    loads = [access for access in kernel.accesses if access.name == "load" and access.pointer]
    for first, second in combinations(loads, 2):
        if second.call in told or not _same_place(first, second):
            continue
        between = statements_between(kernel, first.call, second.call)
        if between is None or len(between) < 2 or not _is_unmerged(kernel, first, second, between):
            continue
        told.add(second.call)
        yield Fault(
            second.call,
            f"These values of {first.pointer} were loaded at line {first.call.lineno} already, and the "
            f"compiler loads them again because {_reason(first, second)}.",
            f"Use what line {first.call.lineno} loaded.",
        )


def _same_place(first: Access, second: Access) -> bool:
    return first.pointer == second.pointer and all(
        _text(one) == _text(other)
        for one, other in ((first.address, second.address), (first.mask, second.mask))
    )


def _is_unmerged(kernel: Kernel, first: Access, second: Access, between: Sequence[ast.stmt]) -> bool:
    """Whether the values are certainly the same, and loaded twice all the same."""
    needed = names_in(first.address, *([first.mask] if first.mask else []))
    if needed & bound_in(*between[:-1]) or any(_nested(one, first, second) for one in between):
        return False
    if any(keyword.arg == "volatile" for one in (first, second) for keyword in one.call.keywords):
        return False
    middle = between[:-1]
    writes = [access for one in middle for access in accesses_in(kernel, one) if access.writes]
    if any(calls_unknown(kernel, one) for one in between) or any(
        access.pointer in (None, first.pointer) or access.name != "store" for access in writes
    ):
        return False
    return bool(writes) or _text(first.other) != _text(second.other)


def _nested(statement: ast.stmt, first: Access, second: Access) -> bool:
    """Whether one of the loads stands in a branch or a loop below the statement."""
    compound = isinstance(statement, ast.If | ast.For | ast.While)
    return compound and any(node in (first.call, second.call) for node in ast.walk(statement))


def _reason(first: Access, second: Access) -> str:
    differ = _text(first.other) != _text(second.other)
    return "their `other` differs" if differ else "a store stands between the two"


def _text(node: ast.expr | None) -> str:
    return "" if node is None else ast.dump(node)
