"""Results are wrong for values that are large, small, infinite or otherwise special.

Random values of middling size, which most tests draw, do not show it. In training such values come up, and
one NaN spreads through the whole model.

Instead, subtract the maximum before exp, shift before squares, and give masked lanes the neutral value.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import MeasuredTarget
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "high"
CATEGORY = "numerical stability"
_FILE = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [40]}
CASES = ("N=40", "N=40 large")

def reference(x):
    return torch.softmax(x, 0)

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=float("-inf"))
    %s
    tl.store(out_ptr + i, y / tl.sum(y), mask=i < n)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel(), BLOCK=64)
    return out
"""
BAD = (_FILE % "y = tl.exp(x)",)
GOOD = (_FILE % "y = tl.exp(x - tl.max(x))",)

_USUAL = "Use the form of the formula that holds for such values, in the branches and the masked lanes too."
_INSTEAD = {
    "not_propagated": "Hand NaN and infinities on as PyTorch does: propagate_nan=tl.PropagateNan.ALL.",
    "infinite": "Subtract the maximum before exp, and divide before squaring.",
    "nan_only": "Subtract the maximum before exp, and keep 0 / 0 and inf - inf out of masked lanes.",
    "low_precision": "Subtract the mean before squaring, and accumulate in float32.",
}


def check(measured: MeasuredTarget) -> Iterator[Fault]:
    """What is right for random values and wrong for special ones."""
    for at, sighting in measured.sightings("unstable_results"):
        yield Fault(
            at,
            f"{measured.who} is right for values of middling size, and wrong for special ones.",
            _INSTEAD.get(sighting.telling.what, _USUAL),
            proof=sighting.proof,
        )
