"""PyTorch does the work, or part of it, in place of a Triton kernel.

Each operator beside the kernel reads and writes whole tensors again; where no kernel runs at all, there is
nothing to audit.

Instead, compute it in the kernel; what is meant to stay in PyTorch is named with --allow-torch.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "medium"
CATEGORY = "performance"
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
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return %s
"""
BAD = (_FILE % "x + x", _FILE % "out + 0")
GOOD = (
    _FILE % "out",
    _FILE % "out.view(4, 10).reshape(40)",
    # It fails before it comes to its kernel.
    _FILE.replace("    kernel[", "    assert x.numel() % 16 == 0\n    kernel[").replace("%s", "out"),
)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """Operators that compute, and outputs that no kernel was given."""
    for at, sighting in measured.sightings("left_to_pytorch"):
        yield Fault(
            at,
            f"Beside or in place of a kernel, {measured.target.name or 'run'} lets PyTorch compute.",
            sighting.telling.suggestion or "Compute it in the kernel.",
            proof=sighting.proof,
        )
