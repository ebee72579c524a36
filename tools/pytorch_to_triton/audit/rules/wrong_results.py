"""A kernel does not compute what its reference computes.

Its results are beyond the rounding error that the problem allows, in places and at sizes that no other rule
explains.

Instead, follow the formula from the first wrong element on; validate tells the likely cause.
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
    tl.store(out_ptr + i, %s, mask=i < n)

def run(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (_FILE % "x * 3", _FILE % "tl.where(i % 4 == 1, x, x * 2)")
GOOD = (_FILE % "x * 2", _FILE % "(x * 2).to(tl.float16)")
_USUAL = "Follow the formula from the first wrong element on."


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Wrong values, shapes or dtypes that have no rule of their own."""
    for at, sighting in measured.sightings("wrong_results"):
        about = f" {sighting.subjects}" if sighting.subjects else ""
        yield Fault(
            at,
            f"{measured.who} does not compute what the reference does:{about} is wrong beyond rounding.",
            sighting.telling.suggestion or _USUAL,
            proof=sighting.proof,
        )
