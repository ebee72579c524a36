"""Less than a quarter of a multiprocessor's warps are resident.

While the few that are wait for memory, nothing else runs. Kernels on tensor cores live with that, since a
warp of theirs has much to compute; others seldom do.

Instead, let a thread hold less (smaller blocks, more warps), or a block take less shared memory.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.evidence import CompiledCode
from pytorch_to_triton.audit.fault import Fault

SEVERITY = "low"
CATEGORY = "performance"
_FILE = """
INPUTS = {"x": "float32[N]"}
DIMS = {"N": [4096]}

@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x / tl.sum(x))

def run(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=4096, %s)
    return out
"""
BAD = (_FILE % "num_warps=1",)
GOOD = (_FILE % "num_warps=4", _FILE % "num_warps=8")
_INSTEAD = {
    "registers": "Take smaller blocks or more num_warps, so that a thread holds less.",
    "shared memory": "Take smaller blocks or fewer num_stages.",
    "warps": "Take fewer num_warps.",
    "blocks": "Take more num_warps or larger blocks.",
}


def check(code: CompiledCode) -> Iterator[Fault]:
    """Kernels without tensor cores that are launched so."""
    instructions, occupancy = code.inspected.instructions, code.inspected.occupancy
    if code.is_trial or instructions is None or instructions.matrix or occupancy is None:
        return
    for at, remark in code.remarks("low_occupancy"):
        yield Fault(
            at,
            f"{code.compiled.name} keeps {occupancy.warps} of {occupancy.most_warps} warps on a "
            f"multiprocessor ({' and '.join(occupancy.binds)} set the limit): little runs while these wait "
            "for memory.",
            _INSTEAD[occupancy.binds[0]],
            proof=code.proof(remark),
        )
