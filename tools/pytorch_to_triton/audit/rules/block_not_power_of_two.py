"""A block has a size that is not a power of two.

Triton lays a block out over threads by halving it, and refuses any other size when the kernel is compiled.

Fix: round the size up to a power of two and mask what lies beyond the end.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.call_arguments import argument, literal_integer, shape_of
from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_kernel = example("""
@triton.jit
def kernel(x_ptr):
""")
_variant = example("""
@triton.jit
def kernel(x_ptr, n):
""")
BAD = (
    _kernel("tl.store(x_ptr + tl.arange(0, 100), 0.0)"),
    _kernel("tl.store(x_ptr + tl.arange(4, 4), 0.0)"),
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    low = tl.full((B, 3), -1.0, tl.float32)
""",
    _variant("row = tl.broadcast_to(n, (1, 100))"),
)
GOOD = (_kernel("tl.store(x_ptr + tl.arange(1, 1 + 8), 0.0)"),)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Literal sizes of ranges and new blocks."""
    for path, call in kernel.calls():
        if path == "triton.language.arange":
            yield from _range(call)
        for size in shape_of(path, call):
            elements = literal_integer(size)
            if elements is not None and elements > 0 and elements.bit_count() != 1:
                yield Fault(
                    size, f"A block's size must be a power of two; {elements} is not.", _next(elements)
                )


def _range(call: ast.Call) -> Iterator[Fault]:
    start, end = literal_integer(argument(call, 0, "start")), literal_integer(argument(call, 1, "end"))
    if start is None or end is None:
        return
    length = end - start
    if length <= 0:
        yield Fault(call, f"The range from {start} to {end} is empty.", "Let it end above its start.")
    elif length.bit_count() != 1:
        yield Fault(call, f"The length of tl.arange must be a power of two; {length} is not.", _next(length))


def _next(size: int) -> str:
    return f"Use {1 << size.bit_length()} and mask what lies beyond the end."
