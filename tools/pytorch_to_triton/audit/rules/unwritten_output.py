"""No program writes some elements of the output.

They hold what was in memory before: garbage that may look right in a test.

Instead, let the grid cover the whole output, triton.cdiv(n, BLOCK), and mask by its length alone.
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
    _FILE % ("i < n", "empty_like", "x.numel() // 16"),
    _FILE % ("i < n - 3", "empty_like", "triton.cdiv(x.numel(), 16)"),
)
GOOD = (
    _FILE % ("i < n", "empty_like", "triton.cdiv(x.numel(), 16)"),
    _FILE % ("i < n", "zeros_like", "x.numel() // 16"),
)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Outputs with elements that still hold what their memory held before the call."""
    for at, sighting in measured.sightings("unwritten_output"):
        yield Fault(
            at,
            f"{measured.who} leaves elements of {sighting.subjects} unwritten: they keep what was there.",
            "Cover the whole output with the grid, triton.cdiv(n, BLOCK); start what is added to with zeros.",
            proof=sighting.proof,
        )
