"""Programs of one launch are at odds over an element.

They run in no order: one may read an element before or after another writes it, or both write it with
different values. The result is one thing today and another tomorrow.

Instead, let one program own each element of the output, or accumulate with tl.atomic_add into zeros.
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
    return x.sum()

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    %s

def run(x):
    out = torch.zeros((), device=x.device)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (
    _FILE % "tl.store(out_ptr, tl.load(out_ptr) + tl.sum(x))",
    _FILE % "tl.store(x_ptr + (i + 16) % 32, x)",
)
GOOD = (_FILE % "tl.atomic_add(out_ptr, tl.sum(x))",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Each line at which programs clash."""
    for at, sighting in measured.sightings("race"):
        about = f" elements of {sighting.subjects}" if sighting.subjects else " elements"
        yield Fault(
            at,
            f"Programs of one launch share{about} that one of them writes: results depend on their order.",
            sighting.telling.suggestion,
            proof=sighting.proof,
        )
