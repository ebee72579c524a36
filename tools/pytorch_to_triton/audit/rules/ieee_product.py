"""A float32 product is computed without tensor cores, exactly.

That is as precise as PyTorch's default and several times slower than tensor cores.

Instead, where the tolerance allows it, pass input_precision="bf16x6" or "tf32x3", which are about as precise
on tensor cores.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "info"
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
BAD = (_FILE % ("float32", "", ', input_precision="ieee"', 32),)
GOOD = (_FILE % ("float32", "", "", 32), _FILE % ("float16", "", ', input_precision="ieee"', 32))


def check(code: CompiledCode) -> Iterator[Fault]:
    """Products of float32 operands in full precision."""
    for at, remark in code.remarks("dot_without_tensor_cores"):
        if remark.precision == "f32 ieee":
            yield Fault(
                at,
                f"{code.compiled.name} multiplies float32 exactly, which {code.gpu.name} does without tensor "
                "cores.",
                'Try input_precision="bf16x6" or "tf32x3", which are about as precise on tensor cores.',
                proof=code.proof(remark),
            )
