"""A kernel spells the same load twice.

The compiler merges two loads of one address and mask where nothing is stored in between, so it costs no
time. But readers have to check that it is the same value.

Fix: use what the first load gave.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.repeated import repeated_loads
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "info"
CATEGORY = "memory access"
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
    _KERNEL.format(step="total = tl.sum(x)"),
    _KERNEL.format(step="pass").replace("out_ptr + i, again", "out_ptr + i, x + again"),
)
GOOD = (
    _KERNEL.format(step="i += B"),
    # The compiler has to load these again, as another rule reports.
    _KERNEL.format(step="tl.store(out_ptr + i, x)"),
    _KERNEL.format(step="tl.store(x_ptr + i, x)"),
    # Another thread may have written.
    _KERNEL.format(step="tl.debug_barrier()"),
    _KERNEL.format(step="pass").replace("i < n, other=0.0).to", "i < n, other=1.0).to"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Pairs of loads in one list of statements that the compiler merges."""
    reported: set[ast.Call] = set()
    for pair in repeated_loads(kernel):
        if pair.is_merged and pair.second.call not in reported:
            reported.add(pair.second.call)
            line = pair.first.call.lineno
            yield Fault(
                pair.second.call,
                f"These values of {pair.first.pointer} were loaded at line {line} already; the compiler "
                "merges the two loads.",
                f"Use what line {line} loaded.",
            )
