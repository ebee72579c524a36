"""A triton.Config sets a parameter that the kernel does not have.

Autotuning passes everything in a configuration on to the kernel, and the first launch raises KeyError.

Fix: use the names of the kernel's tl.constexpr parameters; num_warps and num_stages are arguments of
triton.Config itself.
"""

import difflib
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import FOREIGN_OPTIONS, OPTIONS, configurations
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "critical"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 0.0, mask=i < n)
"""
BAD = (
    '@triton.autotune([triton.Config({"BLOCK_SIZE": 64}, num_warps=4)], key=["n"])' + _KERNEL,
    'CONFIGS = [triton.Config({"BLOCK": b, "GROUP": 8}) for b in (64, 128)]\n\n'
    '@triton.autotune(configs=CONFIGS, key=["n"])' + _KERNEL,
    "def configs():\n    return [triton.Config(dict(BLCK=64))]\n\n"
    '@triton.autotune(configs(), key=["n"])' + _KERNEL,
)
GOOD = (
    '@triton.autotune([triton.Config({"BLOCK": 64}, num_warps=4, num_stages=2)], key=["n"])' + _KERNEL,
    '@triton.autotune([triton.Config({"BLOCK": 64, "waves_per_eu": 2})], key=["n"])' + _KERNEL,
    '@triton.autotune([triton.Config({"BLOCK": 64, **more})], key=["n"])' + _KERNEL,
    'def tuned(function):\n    return function\n\n@triton.autotune([triton.Config({"LEVEL": 1})], key=["n"])'
    "\n@tuned" + _KERNEL,
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Each name, once, that a configuration of a kernel sets and that nothing takes."""
    if not kernel.plain or kernel.node.args.kwarg or kernel.file.is_for_a_fork:
        return
    known = {*kernel.parameters} | OPTIONS | FOREIGN_OPTIONS
    for configuration in configurations(kernel):
        for name in configuration.values:
            if name in known:
                continue
            known.add(name)
            close = difflib.get_close_matches(name, kernel.constexprs, n=1)
            yield Fault(
                configuration.call,
                f"A configuration sets {name}, and {kernel.node.name} has no such parameter: "
                "the first launch raises KeyError.",
                f"Did you mean {close[0]}?" if close else f"Leave {name} out, or add it as a tl.constexpr.",
            )
