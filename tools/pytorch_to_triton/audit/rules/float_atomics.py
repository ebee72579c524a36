"""Floats are added by atomics.

The order of the additions differs from run to run, and with it the last bits of the result.

Fix: where results must be reproducible, write one partial sum a program and add those in a second kernel.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "info"
CATEGORY = "numerical stability"
_FILE = """
INPUTS = {"x": "%s[N]"}
DIMS = {"N": [64]}

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    %s

def run(x):
    out = torch.zeros(64, dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out, BLOCK=64)
    return out
"""
BAD = (
    _FILE % ("float32", "tl.atomic_add(out_ptr, tl.sum(x))"),
    _FILE % ("float32", "tl.atomic_add(out_ptr + tl.arange(0, BLOCK), x)"),
)
GOOD = (
    _FILE % ("int32", "tl.atomic_add(out_ptr, tl.sum(x))"),
    _FILE % ("float32", "tl.atomic_max(out_ptr, tl.max(x))"),
    _FILE % ("float32", "tl.store(out_ptr, tl.sum(x))"),
)


def check(code: CompiledCode) -> Iterator[Fault]:
    """Additions by atomics whose type is a float's."""
    for at, remark in code.remarks("float_atomics"):
        yield Fault(
            at,
            f"{code.compiled.name} adds floats by atomics, whose order differs from run to run: so do the "
            "last bits of the result.",
            "Where that matters, store one partial sum a program and add those in a second kernel.",
            proof=code.proof(remark),
        )
