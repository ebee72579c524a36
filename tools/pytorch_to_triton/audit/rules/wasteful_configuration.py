"""One of the autotuner's configurations spills registers or cannot be launched.

The autotuner compiles it at every new key, and seldom or never chooses it.

Instead, leave the configuration out, or prune it with prune_configs_by.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "info"
CATEGORY = "performance"
_FILE = """
INPUTS = {"x": "float16[N]"}
DIMS = {"N": [4096]}

@triton.autotune([%s], key=["n"])
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, (x / tl.sum(x)).to(tl.float16), mask=i < n)

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, 4096)
    return out
"""
_SOUND = 'triton.Config({"BLOCK": 4096}, num_warps=8)'
BAD = (_FILE % f'{_SOUND}, triton.Config({{"BLOCK": 4096}}, num_warps=1, maxnreg=32)',)
GOOD = (_FILE % f'{_SOUND}, triton.Config({{"BLOCK": 4096}}, num_warps=16)',)


def check(code: CompiledCode) -> Iterator[Fault]:
    """Trials of an autotuner that can hardly win."""
    if not code.is_trial:
        return
    for at, remark in (*code.remarks("too_much_shared_memory"), *code.remarks("spills")):
        what = "spills registers" if remark.kind == "spills" else "needs more shared memory than there is"
        yield Fault(
            at,
            f"The configuration {code.compiled.configuration} of {code.compiled.name} {what}: the autotuner "
            "compiles it in vain.",
            "Leave it out, or let prune_configs_by drop it at such sizes.",
            proof=code.proof(remark),
        )
