"""A product of float32 operands is computed in TF32.

It is Triton's default. Of each operand 10 binary digits after the point count, where PyTorch multiplies in
full float32 unless told otherwise: relative errors of about 1e-3.

Fix: pass input_precision="ieee", or "tf32x3" and "bf16x6", which are about as precise and quicker.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "low"
CATEGORY = "numerical stability"
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
BAD = (_FILE % ("float32", "", "", 32), _FILE % ("float32", "", ', input_precision="tf32"', 32))
GOOD = (
    _FILE % ("float32", "", ', input_precision="ieee"', 32),
    _FILE % ("float32", "", ', input_precision="tf32x3"', 32),
    _FILE % ("float16", "", "", 32),
)


def check(code: CompiledCode) -> Iterator[Fault]:
    """Products whose operands are float32 when they reach the tensor cores."""
    for at, remark in code.remarks("tf32_product"):
        yield Fault(
            at,
            f"{code.compiled.name} rounds the float32 operands of tl.dot to TF32: errors of about 1e-3.",
            'Pass input_precision="ieee", or "tf32x3" where speed counts.',
            proof=code.proof(remark),
        )
