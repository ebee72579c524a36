"""The key of triton.autotune names some of a kernel's sizes, and leaves out one that its loop runs to.

The configuration that won for the first such size is then used for all: a short loop and a long one want
other block sizes and numbers of stages.

Instead, add the size to the key; where it changes all the time, add a parameter that holds it rounded up to
a power of two, and name that.
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

SEVERITY = "low"
CATEGORY = "performance"
_TUNED = '@triton.autotune([triton.Config({"B": 64}), triton.Config({"B": 128})], key=["M", "N"])'
_PRODUCT = """
@triton.jit
def kernel(a_ptr, out_ptr, M, N, K, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(0, K):
        total += tl.load(a_ptr + k * N + i, mask=i < N, other=0.0)
    tl.store(out_ptr + i, total, mask=i < N)
"""
BAD = (
    _TUNED + _PRODUCT,
    _TUNED + _PRODUCT.replace("range(0, K)", "tl.range(0, tl.cdiv(K, B))"),
)
GOOD = (
    _TUNED.replace('"N"', '"N", "K"') + _PRODUCT,
    _TUNED.replace('"N"', '"N", "K_BUCKET"') + _PRODUCT.replace("B: tl", "K_BUCKET, B: tl"),
    _TUNED + _PRODUCT.replace("K,", "K: tl.constexpr,"),
    # Told to be a size that the code is not specialised for.
    _TUNED + _PRODUCT.replace("triton.jit", 'triton.jit(do_not_specialize=["K"])'),
    # Keyed on what is fixed in the model alone.
    _TUNED + _PRODUCT.replace("M, N,", "M: tl.constexpr, N: tl.constexpr,"),
    _TUNED.replace('["M", "N"]', "KEY") + _PRODUCT,
)


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Sizes of loops that a key of runtime sizes lacks; a name that extends theirs stands for them."""
    key = setting(kernel, "key")
    given = list(names(key) or ())
    if key is None or not {*given} & kernel.runtime_parameters or configuration_count(kernel) == 1:
        return
    for size in sizes_of_loops(kernel):
        if not any(size.lower() in name.lower() for name in given):
            listed = ", ".join(f'"{name}"' for name in (*given, size))
            yield Fault(
                key,
                f"The loop of {kernel.node.name} runs as long as {size} says, and the key leaves {size} "
                "out: what is best for its first value is used for all.",
                f'Add "{size}" to the key.',
                f"[{listed}]",
            )
