"""A call of Triton's has a keyword that the function does not take, or more arguments than it takes.

The names are PyTorch's, NumPy's or those of other releases of Triton. The call is refused; where it was meant
to mask, nothing else does it.

Fix: use Triton's own: axis, keep_dims, other.
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
_variant = example("""
@triton.jit
def kernel(x_ptr, n):
""")
BAD = (
    _variant("i = tl.arange(0, 16)", "s = tl.sum(tl.load(x_ptr + i), mask=i < n)"),
    _kernel("m = tl.max(tl.load(x_ptr + tl.arange(0, 16)), dim=0)"),
    _kernel("m = tl.min(tl.zeros((2, 4), tl.float32), axis=1, keepdim=True)"),
    _variant("x = tl.load(x_ptr, mask=n > 0, padding=0.0)"),
    _variant("tl.store(x_ptr, 1.0, mask=n > 0, other=0.0)"),
    _kernel("x = tl.zeros((16,), dtype=tl.float32, device='cuda')"),
    """
@triton.autotune([triton.Config({}, BLOCK=128)], key=['n'])
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    pass
""",
    _kernel("tl.store(x_ptr, tl.program_id(0, 1))"),
)
GOOD = (
    _variant(
        "i = tl.arange(0, 16)",
        "x = tl.load(x_ptr + i, mask=i < n, other=0.0, eviction_policy='evict_first')",
        "tl.store(x_ptr, tl.sum(x, axis=0, keep_dims=False), mask=n > 0)",
    ),
    _kernel("x = tl.sort(tl.load(x_ptr + tl.arange(0, 16)), dim=0, descending=True)"),
    """
def run(x):
    return x.sum(dim=0, keepdim=True)
""",
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Arguments that the functions of the installed Triton do not take."""
    for misuse in file.misuses:
        if misuse.fault in ("keyword", "positional"):
            yield Fault(misuse.at, misuse.message, misuse.suggestion)
