"""Each iteration of a loop waits for its own loads.

Triton fetches ahead of a loop with tl.dot by itself, and ahead of others only where it is asked to.

Instead, try tl.range(..., num_stages=3), which copies the next blocks to shared memory meanwhile.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "info"
CATEGORY = "performance"
_FILE = """
INPUTS = {"x": "%(dtype)s[M, M]"}
DIMS = {"M": [64]}

@triton.jit
def kernel(x_ptr, out_ptr, M, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * M + i[None, :]
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in %(range)s:
        x = tl.load(x_ptr + at + start)
        sums = %(sums)s
    tl.store(out_ptr + at, sums)

def run(x):
    out = torch.empty(64, 64, device=x.device)
    kernel[(1,)](x, out, 64, BLOCK=32, num_stages=%(stages)d)
    return out
"""
_DOT = {"dtype": "float16", "range": "range(0, M, BLOCK)", "sums": "tl.dot(x, x, sums)", "stages": 3}
_SUM = _DOT | {"dtype": "float32", "sums": "sums + x"}
BAD = (_FILE % _SUM, _FILE % (_SUM | {"dtype": "float16"}))
GOOD = (
    _FILE % (_SUM | {"range": "tl.range(0, M, BLOCK, num_stages=3)"}),
    _FILE % _DOT,
    _FILE % (_DOT | {"stages": 1}),
)


def check(code: CompiledCode) -> Iterator[Fault]:
    """Loops without a product; those with one are told by dot_loop_without_async_copies."""
    for at, remark in code.remarks("loop_without_async_copies"):
        if not remark.figures["dots"]:
            yield Fault(
                at,
                f"Each iteration of this loop in {code.compiled.name} waits for its loads.",
                "Try tl.range(..., num_stages=3) and measure.",
                proof=code.proof(remark),
            )
