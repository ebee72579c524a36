"""A thread loads or stores less at once than its part of the block would allow."""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Rule, RuleCheck

_FILE = """
INPUTS = {"x": "%s[N]"}
DIMS = {"N": [4096]}

@triton.jit
def kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + %s)
    tl.store(out_ptr + i, x)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](%s, out, %s, BLOCK=1024)
    return out
"""
BAD = (
    _FILE % ("float32", "2 * i", "x", "16"),
    _FILE % ("float32", "(i % 32) * stride + i // 32", "x", "16"),
    _FILE % ("float16", "2 * i", "x", "16"),
    _FILE % ("float16", "(i % 32) * stride + i // 32", "x", "16"),
)
GOOD = (
    _FILE % ("float32", "stride + i", "x", "16"),
    _FILE % ("float32", "i", "x[1:]", "16"),
    _FILE % ("float16", "stride + i", "x", "1001"),
    _FILE % ("float16", "tl.load(x_ptr + i).to(tl.int32)", "x", "16"),
    _FILE % ("float16", "i", "x", "16"),
)
_SINGLE_BITS = 16
_WIDEST_BITS = 128


def _check(code: CompiledCode) -> Iterator[Fault]:
    """Accesses that are narrow for their pattern alone: no alignment is in doubt, and no index was loaded."""
    if not code.knows_alignment:
        return
    for at, remark in code.remarks("narrow_access"):
        bits, possible = remark.figures["bits"], remark.figures["possible"]
        is_single = bits <= _SINGLE_BITS and possible >= _WIDEST_BITS
        if not code.gathers_at(at.lineno):
            yield Fault(
                at,
                f"A thread of {code.compiled.name} moves {bits} bits at once here where {possible} are "
                f"possible: it takes {possible // bits} times the instructions.",
                "Let the last axis of the block run along the tensor's axis of stride 1.",
                proof=code.proof(remark),
                severity=None if is_single else "low",
            )


_ABOUT = """\
A thread loads or stores less at once than its part of the block would allow.

A warp then needs several times the instructions for the same bytes. Where elements that are neighbors in the
block are not neighbors in memory, each short one takes an instruction and a sector of 32 bytes of its own.

Fix: let the last axis of the block run along the axis of the tensor that has stride 1."""
RULES = (
    Rule("narrow_access", _ABOUT, "medium", "memory access", (RuleCheck(CompiledCode, _check, BAD, GOOD),)),
)
