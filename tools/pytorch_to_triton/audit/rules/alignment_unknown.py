"""The compiler does not know that addresses are multiples of 16, and makes narrow accesses.

Triton looks at each argument of a call: an address or a size that is no multiple of 16 makes code that can
rely on no alignment.

Instead, pad rows to a multiple of 16 elements, or say tl.multiple_of where it is true.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "info"
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
_PLAIN = {"dtype": "float32", "offsets": "stride + i", "argument": "x", "stride": "16"}
BAD = (
    _FILE % (_PLAIN | {"argument": "x[1:]"}),
    _FILE % (_PLAIN | {"stride": "1001"}),
)
GOOD = (_FILE % _PLAIN, _FILE % (_PLAIN | {"offsets": "i", "stride": "1001"}))


def check(code: CompiledCode) -> Iterator[Fault]:
    """What makes accesses narrow, once a kernel."""
    for at, remark in code.remarks("alignment_unknown"):
        yield Fault(
            at,
            f"{code.compiled.name} was compiled for arguments that are no multiples of 16, and some of its "
            "accesses are narrow for it.",
            "Pad rows to multiples of 16 elements, or say tl.multiple_of where it is true.",
            proof=code.proof(remark),
        )
