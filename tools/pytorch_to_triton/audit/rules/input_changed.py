"""A call writes to a tensor that it is given.

The reference does not. The caller goes on with other values than it passed, and gradients that were to be
computed from them are wrong.

Instead, allocate the output with torch.empty_like; x.contiguous() and x.view(...) may return x itself.
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
    out = %s
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (_FILE % "x", _FILE % "x.contiguous()")
GOOD = (_FILE % "x.clone()", _FILE % "torch.empty_like(x)")


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Inputs that hold other values after the call."""
    for at, sighting in measured.sightings("input_changed"):
        names = sighting.subjects.replace(" after the call", "")
        yield Fault(
            at,
            f"{measured.who} writes to {names}, which the reference leaves alone.",
            "Store to a new tensor, torch.empty_like(...); .contiguous() and .view() may return the input.",
            proof=sighting.proof,
        )
