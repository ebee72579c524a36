"""A kernel uses Python that Triton's interpreter runs and its compiler refuses.

It works under TRITON_INTERPRET=1 and fails on any GPU.

Instead, write it with triton.language, in functions that are decorated with @triton.jit.
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

def twice(x):
    return x + x

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
BAD = (_FILE % "twice(x)", _FILE % 'eval("x * 2")')
GOOD = (_FILE % "x * 2",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Names in kernels that only Python knows."""
    for at, sighting in measured.sightings("uncompilable_python"):
        yield Fault(
            at,
            f"{measured.who} runs under the interpreter alone: no GPU compiler accepts what it uses.",
            sighting.telling.suggestion,
            proof=sighting.proof,
        )
