"""A launch passes a keyword that neither the kernel nor Triton knows.

Triton raises KeyError when it compiles the kernel for this launch: most often a parameter was renamed, or the
name is misspelled.

Fix: use the kernel's own parameter names, and for the rest num_warps, num_stages, num_ctas or maxnreg.
"""

import difflib
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import FOREIGN_OPTIONS, OPTIONS
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr = 64):
    i = tl.arange(0, BLOCK_SIZE)
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
    kernel[(1,)](x, x.numel(), BLOCK_SIZE=128, num_warp=8)
""",
    '@triton.autotune([triton.Config({"BLOCK_SIZE": 64})], key=["n"])'
    + _KERNEL
    + """
def run(x):
    kernel[(1,)](x_ptr=x, n=x.numel(), stream=0)
""",
)
GOOD = (
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, n=x.numel(), BLOCK_SIZE=128, num_warps=8, num_stages=2, maxnreg=64)
""",
    _KERNEL
    + """
def run(x, **options):
    kernel[(1,)](x, x.numel(), waves_per_eu=2, matrix_instr_nonkdim=16, kpack=2, **options)
""",
    _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel(), launch_cooperative_grid=True, debug=True)
""",
    "def tuned(function):\n    return function\n\n@tuned"
    + _KERNEL
    + """
def run(x):
    kernel[(1,)](x, x.numel(), level=2)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Keywords of launches of a kernel whose decorators are all Triton's."""
    if not kernel.plain or kernel.node.args.kwarg or kernel.file.is_for_a_fork:
        return
    known = {*kernel.parameters} | OPTIONS
    for launch in kernel.launches:
        for keyword in launch.call.keywords:
            if keyword.arg is None or keyword.arg in known | FOREIGN_OPTIONS:
                continue
            close = difflib.get_close_matches(keyword.arg, known, n=1)
            yield Fault(
                keyword,
                f"{kernel.node.name} has no parameter {keyword.arg}, and Triton has no such option: "
                "this launch raises KeyError.",
                f"Did you mean {close[0]}?" if close else f"Leave {keyword.arg} out, or add the parameter.",
            )
