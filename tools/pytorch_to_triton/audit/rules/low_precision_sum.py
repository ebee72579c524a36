"""A sum is kept in float16 or bfloat16.

Each addition rounds to 11 or 8 binary digits, and float16 overflows beyond 65,504. PyTorch adds in float32.

Fix: convert before the sum, x.to(tl.float32), and round once at the store; leave out tl.dot's out_dtype.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "medium"
CATEGORY = "numerical stability"
_FILE = """
INPUTS = {"x": "%s[M, M]"}
DIMS = {"M": [32]}

@triton.jit
def total(x):
    return tl.sum(x, axis=1)

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * BLOCK + i[None, :])
    tl.store(out_ptr + i, %s)

def run(x):
    out = torch.empty(32, dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, BLOCK=32)
    return out
"""
BAD = (
    _FILE % ("float16", "tl.sum(x, axis=1)"),
    _FILE % ("bfloat16", "total(x)"),
    _FILE % ("float16", "tl.max(tl.dot(x, x, out_dtype=tl.float16), axis=1)"),
)
GOOD = (
    _FILE % ("float32", "tl.sum(x, axis=1)"),
    _FILE % ("float16", "total(x.to(tl.float32))"),
    _FILE % ("float16", "tl.max(x, axis=1)"),
    _FILE % ("float16", "tl.max(tl.dot(x, x), axis=1)"),
    _FILE % ("bfloat16", "tl.sum(x, axis=1, dtype=tl.float32)"),
)


def check(code: CompiledCode) -> Iterator[Fault]:
    """Sums, running sums and products that add in a short type."""
    for at, remark in code.remarks("low_precision_sum"):
        yield Fault(
            at,
            f"{code.compiled.name} adds up in {remark.precision}: each addition rounds, where PyTorch adds "
            "in float32.",
            "Convert with .to(tl.float32) before the sum, and round once, at the store.",
            proof=code.proof(remark),
        )
