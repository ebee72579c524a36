"""Offsets are computed in 32 bits, and a large tensor needs more.

Beyond 2**31 elements the offset becomes negative: the kernel reads and writes elsewhere, most often with an
illegal memory access.

Instead, compute in int64: tl.program_id(0).to(tl.int64) * stride.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "critical"
CATEGORY = "correctness"
_FILE = """
INPUTS = {"x": "float32[M, N]"}
DIMS = {"M": [3], "N": [8]}
CASES = ("M=3 N=8", "M=3 N=8 x rows far apart")

def reference(x):
    return x * 2

@triton.jit
def kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = %s
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i)
    tl.store(out_ptr + row * n + i, x * 2)

def run(x):
    out = torch.empty(x.shape, device=x.device)
    kernel[(3,)](x, out, x.stride(0), 8, BLOCK=8)
    return out
"""
BAD = (_FILE % "tl.program_id(0)",)
GOOD = (_FILE % "tl.program_id(0).to(tl.int64)",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """What goes wrong at huge strides alone."""
    for at, sighting in measured.sightings("offset_overflow"):
        about = f" of {sighting.subjects}" if sighting.subjects else ""
        yield Fault(
            at,
            f"Offsets{about} beyond 2**31 elements do not fit the 32 bits in which they are computed.",
            "Compute them in int64, as in tl.program_id(0).to(tl.int64) * stride.",
            proof=sighting.proof,
        )
