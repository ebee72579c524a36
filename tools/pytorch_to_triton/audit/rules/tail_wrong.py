"""The end of the output is wrong: the part that no whole block covers.

It does not show at sizes that the block divides.

Instead, round the grid up with triton.cdiv, and compare offsets with the true length in every mask.
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
    tl.store(out_ptr + i, x * 2, mask=%s)

def run(x):
    out = torch.%s(x)
    kernel[(%s,)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (
    _FILE % ("i < n", "zeros_like", "x.numel() // 16"),
    _FILE % ("i < n // 16 * 16", "zeros_like", "triton.cdiv(x.numel(), 16)"),
)
GOOD = (
    _FILE % ("i < n", "zeros_like", "triton.cdiv(x.numel(), 16)"),
    _FILE % ("i < n", "empty_like", "x.numel() // 16"),
)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Wrong values at the end, or at sizes that no block divides alone."""
    for at, sighting in measured.sightings("tail_wrong"):
        yield Fault(
            at,
            f"{measured.who} gets the last, partial block of {sighting.subjects} wrong.",
            "Round the grid up with triton.cdiv, and compare offsets with the true length in every mask.",
            proof=sighting.proof,
        )
