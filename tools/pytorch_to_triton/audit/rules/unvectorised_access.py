"""A thread loads or stores one short element at a time where its part of the block allows 128 bits.

Elements that are neighbours in the block are none in memory: each of them takes an instruction of its own and
moves a whole sector of 32 bytes.

Instead, let the last axis of the block run along the axis of the tensor that has stride 1.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "medium"
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
_PLAIN = {"dtype": "float16", "offsets": "i", "argument": "x", "stride": "16"}
BAD = (
    _FILE % (_PLAIN | {"offsets": "2 * i"}),
    _FILE % (_PLAIN | {"offsets": "(i % 32) * stride + i // 32"}),
)
GOOD = (
    _FILE % _PLAIN,
    _FILE % (_PLAIN | {"offsets": "stride + i", "stride": "1001"}),
    _FILE % (_PLAIN | {"offsets": "tl.load(x_ptr + i).to(tl.int32)"}),
    _FILE % (_PLAIN | {"argument": "x[1:]"}),
)
_SINGLE_BITS = 16
_WIDEST_BITS = 128


def check(code: CompiledCode) -> Iterator[Fault]:
    """Accesses that are so for their pattern alone: no alignment is in doubt, and no index was loaded."""
    if not code.knows_alignment:
        return
    for at, remark in code.remarks("narrow_access"):
        bits, possible = remark.figures["bits"], remark.figures["possible"]
        if bits <= _SINGLE_BITS and possible >= _WIDEST_BITS and not code.gathers_at(at.lineno):
            yield Fault(
                at,
                f"Each instruction of {code.compiled.name} moves one element of {bits} bits here where "
                f"{possible // bits} fit: elements that are neighbours in the block are none in memory.",
                "Let the last axis of the block run along the tensor's axis of stride 1.",
                proof=code.proof(remark),
            )
