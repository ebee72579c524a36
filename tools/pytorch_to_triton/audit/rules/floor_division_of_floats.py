"""`//` is applied to floats.

Triton divides integers with it and nothing else: the kernel does not compile.

Fix: write tl.floor(x / y).
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.promotion import FLOATS
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    {steps}
    tl.store(out_ptr + i, y)
"""
BAD = (
    _KERNEL.format(steps="y = tl.exp(x) // 2"),
    _KERNEL.format(steps="x = x.to(tl.float32)\n    x //= 4\n    y = x"),
)
GOOD = (
    _KERNEL.format(steps="y = x // 2"),
    _KERNEL.format(steps="y = tl.floor(tl.exp(x) / 2)"),
    _KERNEL.format(steps="y = i // 2 + n // 2"),
    _KERNEL.format(steps="x = x.to(tl.float32)\n    y = x.to(tl.int32) // 2"),
    _KERNEL.format(steps="y = i // (B / 2)"),
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each `//` with a block on one side that certainly is a float."""
    found = values(kernel)
    for node in found.expressions:
        match node:
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                floats = [side for side in (left, right) if found.dtype(side) in FLOATS]
                if floats:
                    yield Fault(
                        node,
                        f"{ast.unparse(floats[0])} is a float, and Triton divides only integers with //: the "
                        "kernel does not compile.",
                        "Write tl.floor of the quotient.",
                        fix=f"tl.floor(({ast.unparse(left)}) / ({ast.unparse(right)}))",
                    )
