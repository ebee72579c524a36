"""A thread loads or stores less at once than its part of the block would allow.

A warp then needs several times the instructions for the same bytes, and seldom reaches the memory's speed.

Instead, let neighbouring elements of a block be neighbours in memory.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "low"
CATEGORY = "memory access"
_FILE = """
INPUTS = {"x": "%(dtype)s[N]"}
DIMS = {"N": [4096]}

@triton.jit
def kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + %(offsets)s)
    tl.store(out_ptr + i, x)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](%(argument)s, out, %(stride)s, BLOCK=1024)
    return out
"""
_PLAIN = {"dtype": "float32", "offsets": "i", "argument": "x", "stride": "16"}
BAD = (
    _FILE % (_PLAIN | {"offsets": "2 * i"}),
    _FILE % (_PLAIN | {"offsets": "(i % 32) * stride + i // 32"}),
)
GOOD = (
    _FILE % _PLAIN,
    _FILE % (_PLAIN | {"argument": "x[1:]"}),
    _FILE % (_PLAIN | {"dtype": "float16", "offsets": "2 * i"}),
    _FILE % (_PLAIN | {"offsets": "stride + i"}),
    _FILE % (_PLAIN | {"offsets": "tl.load(x_ptr + i).to(tl.int32)"}),
)
_SINGLE_BITS = 16
_WIDEST_BITS = 128


def check(code: CompiledCode) -> Iterator[Fault]:
    """Accesses that are so for their pattern; alignment_unknown and unvectorised_access tell the others."""
    if not code.knows_alignment:
        return
    for at, remark in code.remarks("narrow_access"):
        bits, possible = remark.figures["bits"], remark.figures["possible"]
        if (bits > _SINGLE_BITS or possible < _WIDEST_BITS) and not code.gathers_at(at.lineno):
            yield Fault(
                at,
                f"A thread of {code.compiled.name} moves {bits} bits at once here where {possible} are "
                f"possible: it takes {possible // bits} times the instructions.",
                "Let the last axis of the block run along the tensor's axis of stride 1.",
                proof=code.proof(remark),
            )
