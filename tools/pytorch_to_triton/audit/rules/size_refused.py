"""A call raises at sizes beside the declared ones: empty tensors, or larger ones.

PyTorch takes them, so whoever puts the kernel in its place meets the error one day: at an empty batch, or
with a longer row.

Instead, return early where there is nothing to do, loop over tiles, or say in REQUIRES which sizes are meant.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "medium"
CATEGORY = "correctness"
_FILE = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [40]}
CASES = ("N=40", "N=0")

def reference(x):
    return x * 2

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2, mask=i < n)

def run(x):
    out = torch.empty_like(x)
    if x.numel() == 0:
        %s
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (_FILE % 'raise ValueError("nothing to do")',)
GOOD = (_FILE % "return out",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Errors at sizes that are neither declared nor excluded."""
    for at, sighting in measured.sightings("size_refused"):
        yield Fault(
            at,
            f"{measured.who} raises at sizes that the reference takes.",
            sighting.telling.suggestion
            or "Return early where there is nothing to do; bound sizes with REQUIRES.",
            proof=sighting.proof,
        )
