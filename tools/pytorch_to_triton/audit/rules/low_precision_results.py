"""Results are only as precise as a shorter dtype.

An intermediate result, an accumulator or an operand is rounded on its way; errors are many times those of
PyTorch at the same dtypes.

Instead, compute and accumulate in float32, and round once, at the store.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "medium"
CATEGORY = "numerical stability"
_FILE = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [40]}
CASES = ("N=40",)

def reference(x):
    return x * 2

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, %s, mask=i < n)

def run(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (_FILE % "x.to(tl.float16) * 2", _FILE % "(x * 2).to(tl.bfloat16)")
GOOD = (_FILE % "x * 2", _FILE % "x * 3")


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Results whose error is that of a shorter dtype throughout."""
    for at, sighting in measured.sightings("low_precision_results"):
        yield Fault(
            at,
            f"{measured.who} loses precision on the way to {sighting.subjects}: its error is beyond "
            "PyTorch's at the same dtypes.",
            "Compute and accumulate in float32, and round once, at the store.",
            proof=sighting.proof,
        )
