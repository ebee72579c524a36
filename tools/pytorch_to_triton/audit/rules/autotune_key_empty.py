"""triton.autotune has an empty key although the kernel's work grows with sizes that vary.

The configuration that won at the very first launch, however small its tensors were, is used for all later
sizes.

Instead, name in the key the sizes that decide which configuration is best.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import (
    configuration_count,
    names,
    setting,
    sizes_of_loops,
)
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceKernel

SEVERITY = "medium"
CATEGORY = "performance"
_TUNED = '@triton.autotune([triton.Config({"B": 64}), triton.Config({"B": 128})], key=[])'
_SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        total += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(total))
"""
BAD = (
    _TUNED + _SUM,
    _TUNED.replace("key=[]", "[]") + _SUM.replace("range(0, n, B)", "range(0, tl.cdiv(n, B))"),
)
GOOD = (
    _TUNED.replace("[]", '["n"]') + _SUM,
    _TUNED.replace("[]", "KEY") + _SUM,
    _TUNED.replace('triton.Config({"B": 64}), ', "") + _SUM,
    # The same work for each program, whatever the size.
    _TUNED
    + """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
""",
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Empty literal keys of kernels that loop as long as a runtime size says."""
    key = setting(kernel, "key")
    if key is None or names(key) != {} or configuration_count(kernel) == 1:
        return
    sizes = sizes_of_loops(kernel)
    if sizes:
        listed = ", ".join(f'"{name}"' for name in sizes)
        yield Fault(
            key,
            f"The first launch of {kernel.node.name} chooses the configuration for all sizes: its loop runs "
            f"as long as {', '.join(sizes)} says, and the key is empty.",
            f"Write key=[{listed}].",
            f"[{listed}]",
        )
