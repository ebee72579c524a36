"""A kernel reads or writes memory outside of its tensors.

What it reads there is anything, what it writes there destroys other tensors' values, and far enough outside
the GPU stops with an illegal memory access.

Instead, mask the access with the length of the tensor along every axis that the block covers.
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
    x = tl.load(x_ptr + i, mask=%s)
    tl.store(out_ptr + i, x * 2, mask=%s)

def run(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (_FILE % ("None", "i < n"), _FILE % ("i < n", "i < n + 1"))
GOOD = (_FILE % ("i < n", "i < n"),)
_TOLD = {
    "load_outside": "A load reaches outside of {tensor}: it reads what happens to lie there",
    "store_outside": "A store reaches outside of {tensor}: it overwrites what lies there",
    "overrun": "A store went past {tensor}: other values were overwritten",
}


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Each line that reaches outside."""
    for at, sighting in measured.sightings("out_of_bounds"):
        told = _TOLD[sighting.telling.what].format(tensor=sighting.subjects or "every tensor")
        yield Fault(
            at,
            f"{told}, and far enough outside the GPU stops the program.",
            sighting.telling.suggestion,
            pointer=sighting.subjects,
            proof=sighting.proof,
        )
