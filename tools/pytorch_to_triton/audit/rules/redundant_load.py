"""Pairs of loads in one list of statements, each second one once; those that stay two come first."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.repeated import Pair, repeated_loads
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

_HEAD = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
"""
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    {step}
    again = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, again / tl.sum(x), mask=i < n)
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
    # Another place by then.
    _HEAD
    + """
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x)
    i += n
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
    _KERNEL.format(step="tl.store(x_ptr + i, x)"),
    # Another thread may have written.
    _KERNEL.format(step="tl.debug_barrier()"),
)


@kernel_rule("low", "memory access", BAD, GOOD)
def redundant_load(kernel: SourceKernel) -> Iterator[Fault]:
    """A kernel loads the same values twice.

    The compiler merges two loads of one address and mask, unless a store stands between them, which may
    change what is there, or their `other` differs: then the values come from memory twice. Where it merges
    them, readers still have to check that it is the same value.

    Fix: keep the values of the first load in a variable; put another fill value in with tl.where.
    """
    reported: set[ast.Call] = set()
    for pair in sorted(repeated_loads(kernel), key=lambda pair: pair.is_merged):
        if pair.second.call in reported:
            continue
        reported.add(pair.second.call)
        line = pair.first.call.lineno
        yield Fault(
            pair.second.call,
            f"These values of {pair.first.pointer} were loaded at line {line} already, and the compiler "
            f"{_outcome(pair)}.",
            f"Use what line {line} loaded.",
            severity="info" if pair.is_merged else None,
        )


def _outcome(pair: Pair) -> str:
    if pair.is_merged:
        return "merges the two loads"
    reason = "a store stands between the two" if pair.fills_alike else "their `other` differs"
    return f"loads them again because {reason}"
