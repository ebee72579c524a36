"""A tl.dot is computed without tensor cores although its operands' type has them.

It then runs on the ordinary units, at a tenth of the speed or less.

Instead, make the blocks at least 16 by 16 (32 along K for 8-bit types).
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "medium"
CATEGORY = "performance"
_FILE = """
INPUTS = {"x": "%s[M, M]"}
DIMS = {"M": [32]}
%s
@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.dot(x, x%s))

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=%d)
    return out
"""
BAD = (_FILE % ("float16", 'ARCH = "gfx942"', "", 4), _FILE % ("bfloat16", 'ARCH = "gfx942"', "", 8))
GOOD = (
    _FILE % ("float16", "", "", 16),
    _FILE % ("float32", "", "", 32),
    _FILE % ("float32", "", ', input_precision="ieee"', 32),
)
_WITH_TENSOR_CORES = ("f16", "bf16", "i8", "f8E4M3FN", "f8E5M2")


def check(code: CompiledCode) -> Iterator[Fault]:
    """Products of short types; that float32 itself has no tensor cores is told by ieee_product."""
    for at, remark in code.remarks("dot_without_tensor_cores"):
        if remark.precision in _WITH_TENSOR_CORES:
            yield Fault(
                at,
                f"{code.compiled.name} computes this tl.dot on ordinary units, although {code.gpu.name} has "
                f"tensor cores for {remark.precision}.",
                "Make the blocks at least 16 by 16, 32 along K for 8-bit types.",
                proof=code.proof(remark),
            )
