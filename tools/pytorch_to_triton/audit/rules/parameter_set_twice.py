"""A launch passes what the kernel's configurations set, too.

Autotuning sets the parameters of a triton.Config, and num_warps, num_stages and num_ctas with them. A launch
that passes one of them again is refused: a value would be given twice.

Fix: leave to triton.autotune what it chooses, in positional arguments, too.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import configurations
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_KERNEL = """
@triton.autotune([triton.Config({"BLOCK": b}, num_warps=4) for b in (64, 128)], key=["n"])
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
BAD = (
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel(), BLOCK=128)
""",
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel(), 128)
""",
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel(), num_warps=8)
""",
)
GOOD = (
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel(), EVEN=True)
""",
    # A launch of the function below the autotuner.
    _KERNEL
    + """
def run(x):
    kernel.fn[(1,)](x, x.numel(), BLOCK=128, num_warps=8)
""",
    """
@triton.heuristics({"BLOCK": lambda args: 64})
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)

def run(x):
    kernel[(1,)](x, x.numel(), BLOCK=128, num_warps=8)
""",
    # Some configurations leave the parameter to the launch.
    """
@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({})], key=["n"], prune_configs_by=PRUNE)
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)

def run(x):
    kernel[(1,)](x, x.numel(), BLOCK=128)
""",
)
_ALWAYS = frozenset({"num_warps", "num_stages", "num_ctas"})


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Arguments of launches that every configuration sets as well."""
    configs = configurations(kernel)
    if not configs or not kernel.plain:
        return
    tuned = frozenset.intersection(*(frozenset(one.values) for one in configs)) | _ALWAYS
    for launch in kernel.launches:
        for name, value in {**launch.options, **launch.given(kernel)}.items():
            if name in tuned:
                yield Fault(
                    value,
                    f"Autotuning sets {name}, and this launch of {kernel.node.name} passes it again: "
                    "the launch raises an error.",
                    f"Leave {name} out of the launch.",
                )
