"""A loop around tl.dot waits for its loads in each iteration.

Tensor cores idle while operands come from global memory; fetching the next blocks meanwhile hides that.

Instead, launch with num_stages of 2 to 5, or write tl.range(..., num_stages=3).
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "low"
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
BAD = (_FILE % (_DOT | {"stages": 1}), _FILE % (_DOT | {"range": "tl.range(0, M, BLOCK, num_stages=1)"}))
GOOD = (
    _FILE % _DOT,
    _FILE % (_DOT | {"stages": 1, "range": "tl.range(0, M, BLOCK, num_stages=3)"}),
    _FILE % _SUM,
)


def check(code: CompiledCode) -> Iterator[Fault]:
    """Loops with a product of kernels that are launched so; an autotuner's trials need not be."""
    for at, remark in code.remarks("loop_without_async_copies"):
        if remark.figures["dots"] and not code.is_trial:
            yield Fault(
                at,
                f"Each iteration of this loop in {code.compiled.name} waits for the operands of its tl.dot: "
                "nothing is fetched ahead.",
                "Launch with num_stages of 2 to 5, or write tl.range(..., num_stages=3).",
                proof=code.proof(remark),
            )
