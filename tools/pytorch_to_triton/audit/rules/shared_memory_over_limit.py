"""A block needs more shared memory than the GPU grants.

The kernel compiles and cannot be launched: Triton raises OutOfResources.

Instead, take smaller blocks or fewer stages.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "critical"
CATEGORY = "correctness"
_FILE = """
INPUTS = {"x": "float16[M, M]"}
DIMS = {"M": [64]}

@triton.jit
def kernel(x_ptr, out_ptr, M, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, M, BLOCK):
        left = tl.load(x_ptr + i[:, None] * M + start + i[None, :])
        right = tl.load(x_ptr + (start + i[:, None]) * M + i[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(out_ptr + i[:, None] * M + i[None, :], sums.to(tl.float16))

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, 64, BLOCK=64, %s)
    return out
"""
BAD = (_FILE % "num_stages=16", _FILE % "num_stages=20")
GOOD = (_FILE % "num_stages=3",)


def check(code: CompiledCode) -> Iterator[Fault]:
    """Kernels that are launched so; the autotuner passes over a trial that needs too much."""
    if code.is_trial or code.compiled.resources is None:
        return
    used, most = code.compiled.resources.shared_bytes, code.gpu.shared_bytes_per_block
    for at, remark in code.remarks("too_much_shared_memory"):
        yield Fault(
            at,
            f"{code.compiled.name} cannot be launched on {code.gpu.name}: a block needs {used:,} bytes of "
            f"shared memory, and {most:,} are granted.",
            f"Take smaller blocks or fewer num_stages than {code.compiled.num_stages}.",
            proof=code.proof(remark),
        )
