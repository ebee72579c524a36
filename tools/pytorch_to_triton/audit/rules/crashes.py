"""A call raises, does not return, or ends its process.

The reference returns at the same inputs.

Instead, mend what the error names; sizes and layouts that are meant to be refused belong into REQUIRES.
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
    tl.store(out_ptr + i, x * 2, mask=i < n)

def run(x):
    assert x.numel() %% %s == 0
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (_FILE % "16",)
GOOD = (_FILE % "8",)
_ENDS = {
    "crashed": "ends the process",
    "timed_out": "does not return",
    "raised": "raises",
}


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Calls that no violation explains and that did not return."""
    for at, sighting in measured.sightings("crashes"):
        telling = sighting.telling
        yield Fault(
            at,
            f"{measured.who} {_ENDS[telling.what]} where the reference returns.",
            telling.suggestion or "Mend what the error names, or exclude such inputs with REQUIRES.",
            proof=sighting.proof,
        )
