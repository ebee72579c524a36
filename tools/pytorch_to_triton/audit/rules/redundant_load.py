"""A kernel loads the same values twice, and the compiler cannot make one load of them.

The compiler merges two loads of one address and mask, unless a store stands between them, which may change
what is there, or their `other` differs. Then the values travel from memory twice.

Fix: keep the values of the first load in a variable; put another fill value in with tl.where.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.repeated import Pair, repeated_loads
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

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


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Pairs of loads in one list of statements that stay two, each second one once."""
    reported: set[ast.Call] = set()
    for pair in repeated_loads(kernel):
        if pair.is_merged or pair.second.call in reported:
            continue
        reported.add(pair.second.call)
        line = pair.first.call.lineno
        yield Fault(
            pair.second.call,
            f"These values of {pair.first.pointer} were loaded at line {line} already, and the compiler "
            f"loads them again because {_reason(pair)}.",
            f"Use what line {line} loaded.",
        )


def _reason(pair: Pair) -> str:
    return "a store stands between the two" if pair.fills_alike else "their `other` differs"
