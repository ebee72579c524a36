"""A later call changes the results of the call before.

The output lies in a buffer that is used again: whoever keeps the first result finds the second one in it.

Instead, allocate the output in each call; PyTorch's allocator makes that cheap.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "critical"
CATEGORY = "correctness"
_FILE = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [40]}
CASES = ("N=40 called again",)

BUFFERS = {}

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
BAD = (_FILE % "BUFFERS.setdefault(x.shape, torch.empty_like(x))",)
GOOD = (_FILE % "torch.empty_like(x)",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Outputs that a second call wrote into."""
    for at, sighting in measured.sightings("results_overwritten"):
        yield Fault(
            at,
            f"{measured.who} returns memory that the next call overwrites.",
            sighting.telling.suggestion,
            proof=sighting.proof,
        )
