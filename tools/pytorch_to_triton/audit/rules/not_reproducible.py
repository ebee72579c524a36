"""The same call gives other bits in a second run.

No kernel adds by atomics, which would explain it: something depends on time, on chance, or on which program
comes first.

Instead, take seeds as arguments, and look for programs that read what another one writes.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "medium"
CATEGORY = "correctness"
_FILE = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [40]}
CASES = ("N=40",)

import random

def reference(x):
    return x * 2

@triton.jit
def kernel(x_ptr, out_ptr, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2 + tl.rand(seed, i) * 1e-6, mask=i < n)

def run(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), %s, BLOCK=16)
    return out
"""
BAD = (_FILE % "random.randrange(10**6)",)
GOOD = (_FILE % "7",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Results that differ from run to run for no known reason."""
    for at, sighting in measured.sightings("not_reproducible"):
        yield Fault(
            at,
            f"{measured.who} returns other bits in a second run on the same values.",
            sighting.telling.suggestion,
            proof=sighting.proof,
        )
