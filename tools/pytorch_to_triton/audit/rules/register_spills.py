"""The values that a thread holds do not fit into its registers.

What does not fit is written to local memory, which is as slow as global memory, and read back.

Instead, give each thread less to hold: smaller blocks, or more warps for the same block.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "medium"
CATEGORY = "performance"
_FILE = """
INPUTS = {"x": "float16[N]"}
DIMS = {"N": [4096]}

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i).to(tl.float32)
    tl.store(out_ptr + i, (x / tl.sum(x)).to(tl.float16))

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=4096, %s)
    return out
"""
BAD = (_FILE % "num_warps=1, maxnreg=32", _FILE % "num_warps=2, maxnreg=32")
GOOD = (_FILE % "num_warps=8", _FILE % "num_warps=4")
_FEW_BYTES = 32
"""So few are noise."""


def check(code: CompiledCode) -> Iterator[Fault]:
    """Spills of kernels that are launched so; an autotuner's trials need not be."""
    if code.is_trial or code.compiled.resources is None:
        return
    spilled = code.compiled.resources.spill_store_bytes
    for at, remark in code.remarks("spills"):
        if spilled > _FEW_BYTES:
            yield Fault(
                at,
                f"A thread of {code.compiled.name} holds more than its registers can: {spilled} bytes go to "
                "local memory and come back, at the price of global memory.",
                "Take smaller blocks, or more num_warps for the same blocks.",
                proof=code.proof(remark),
            )
