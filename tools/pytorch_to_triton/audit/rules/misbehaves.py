"""A call reaches outside of what a kernel's wrapper is for.

It changes settings of the whole process, replaces others' functions, reads files, opens connections, or
leaves something running. Whoever calls it cannot foresee that, and no measurement of it can be relied on.

Instead, keep to the arguments; set what must be set around the call and put it back.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "critical"
CATEGORY = "best practices"
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
    %s
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (
    _FILE % 'torch.set_float32_matmul_precision("medium")',
    _FILE % "torch.Tensor.contiguous = torch.Tensor.clone",
)
GOOD = (_FILE % "torch.get_float32_matmul_precision()",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Everything that the candidate did to its process."""
    for at, sighting in measured.sightings("misbehaves"):
        yield Fault(
            at,
            f"A call of {measured.target.name or 'run'} reaches outside of its tensors: "
            f"{sighting.telling.what.replace('_', ' ')}.",
            sighting.telling.suggestion,
            proof=sighting.proof,
        )
