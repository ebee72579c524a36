"""A file uses a name that Triton does not have.

Such names come from PyTorch, CUDA or other releases of Triton; the import or the compiler fails on them.

Fix: use the name that each finding gives. Functions of one number that tl lacks are mostly in libdevice:
`from triton.language.extra import libdevice`.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.examples import example
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile

SEVERITY = "critical"
CATEGORY = "correctness"
_kernel = example("""
@triton.jit
def kernel(x_ptr):
""")
BAD = (
    _kernel("tl.store(x_ptr, tl.relu(tl.load(x_ptr)))"),
    _kernel("tl.store(x_ptr, tl.math.tanh(tl.load(x_ptr)))"),
    _kernel("tl.store(x_ptr, tl.libdevice.exp(tl.load(x_ptr)))"),
    _kernel("tl.debug_print('x', tl.load(x_ptr))"),
    _kernel("tl.async_copy(x_ptr, x_ptr)", "tl.syncthreads()"),
    _kernel("x = tl.load(x_ptr, other=-tl.inf)"),
    _kernel("x = tl.load(x_ptr).float()"),
    """
def run(x):
    return triton.next_pow2(x.numel())
""",
    """
from triton.ops import matmul
""",
)
GOOD = (
    """
from triton.language.extra import libdevice

@triton.jit
def kernel(x_ptr):
    x = tl.math.exp(libdevice.tanh(tl.load(x_ptr)))
    tl.device_print('x', x)
    tl.debug_barrier()
""",
    """
def run(x):
    return getattr(tl.math, 'tanh', None) or tl.math.tanh
""",
    """
if hasattr(tl, 'tanh'):
    tanh = tl.tanh
else:
    from triton.language.extra.libdevice import tanh
""",
    """
@triton.jit
def relu(x):
    return tl.maximum(x, 0.0)

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, relu(tl.load(x_ptr)))
""",
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Names that the installed Triton lacks, or has only to refuse them."""
    for misuse in file.misuses:
        if misuse.fault in ("unknown", "removed"):
            yield Fault(misuse.at, misuse.message, misuse.suggestion)
