"""Results are wrong for tensors that are not contiguous.

The kernel computes addresses as if neighbours lay side by side; views such as x.t() or x[:, ::2] have other
strides, which PyTorch's operators honour.

Instead, pass x.stride(...) for every axis to the kernel, or take x.contiguous() before the launch.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "critical"
CATEGORY = "correctness"
_FILE = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [40]}
CASES = ("N=40", "N=40 x sliced")

def reference(x):
    return x * 2

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * 2, mask=i < n)

def run(x):
    x = %s
    out = torch.empty(x.shape, device=x.device)
    kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), BLOCK=16)
    return out
"""
BAD = (_FILE % "x",)
GOOD = (_FILE % "x.contiguous()",)


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """What is right for contiguous tensors and wrong for the same values in other places."""
    for at, sighting in measured.sightings("layout_ignored"):
        yield Fault(
            at,
            f"{measured.who} is right for contiguous tensors only: it takes no account of strides.",
            "Pass the strides of every axis to the kernel, or call .contiguous() before the launch.",
            proof=sighting.proof,
        )
