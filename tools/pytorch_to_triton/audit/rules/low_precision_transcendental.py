"""tl.exp, tl.log, tl.sqrt and the like are given float16 or bfloat16.

They take float32 and float64 only. The kernel does not compile: "Expected dtype ['fp32', 'fp64'] but got
fp16".

Fix: cast before the function, tl.exp(x.to(tl.float32)), and cast the result where it is stored.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.arithmetic import values
from pytorch_to_triton.audit.analysis.promotion import LOW_PRECISION
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    {steps}
    tl.store(out_ptr + i, y)
"""
BAD = (
    _KERNEL.format(steps="y = tl.exp(x.to(tl.float16))"),
    _KERNEL.format(steps="h = x.to(tl.bfloat16) * 2.0\n    y = tl.math.sqrt(h)"),
    _KERNEL.format(
        steps="h = tl.zeros((B,), tl.float16)\n    h += x.to(tl.float16)\n    y = tl.sigmoid(x=h)"
    ),
)
GOOD = (
    _KERNEL.format(steps="y = tl.exp(x.to(tl.float32)).to(tl.float16)"),
    _KERNEL.format(steps="y = tl.exp(x.to(x_ptr.dtype.element_ty))"),
    _KERNEL.format(steps="y = tl.abs(x.to(tl.float16))"),
    _KERNEL.format(steps="h = x.to(tl.float16)\n    h = h.to(tl.float32)\n    y = tl.log(h)"),
    _KERNEL.format(steps="h = x.to(tl.float16)\n    y = tl.exp(h / 2.0)"),
    _KERNEL.format(steps="h = x.to(tl.float16)\n    y = tl.exp(h - tl.max(h))"),
)

_FLOAT32_ONLY = frozenset({"exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "sqrt_rn", "erf"})
_FLOAT32_ONLY |= {"floor", "ceil", "sigmoid"}


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each such function of a block that certainly is of low precision."""
    found = values(kernel)
    for call in found.operations:
        # Methods of a block, x.exp(), are not checked by Triton.
        path = kernel.scope.path(call.call.func)
        if path is None or call.name not in _FLOAT32_ONLY or not call.operands or "libdevice" in path:
            continue
        dtype = found.dtype(call.operands[0])
        if dtype in LOW_PRECISION:
            block = ast.unparse(call.operands[0])
            yield Fault(
                call.call,
                f"tl.{call.name} does not accept {dtype}, the dtype of {block}: the kernel does not compile.",
                "Cast to tl.float32 before it.",
                fix=f"{ast.unparse(call.call.func)}(({block}).to(tl.float32))",
            )
