"""Results follow what uninitialised memory held.

torch.empty gives memory as it was left. A kernel that reads it before it writes it returns one thing today
and another tomorrow.

Instead, write every element before it is read; start what is accumulated into with torch.zeros.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "critical"
CATEGORY = "correctness"
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
    before = tl.load(out_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.where(before < 0, 0.0, x * 2), mask=i < n)

def run(x):
    out = %s
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (_FILE % "torch.empty_like(x)", _FILE % "torch.empty(64, device=x.device)[:40]")
GOOD = (_FILE % "torch.zeros_like(x)",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Results that were others where memory held something else before the call."""
    for at, sighting in measured.sightings("undefined_values"):
        yield Fault(
            at,
            f"{measured.who} returns what depends on memory that nobody has written.",
            sighting.telling.suggestion,
            proof=sighting.proof,
        )
