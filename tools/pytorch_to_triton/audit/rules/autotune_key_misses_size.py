"""Sizes of loops that a literal key lacks; a name that extends theirs stands for them."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.configurations import (
    configuration_count,
    names,
    setting,
    sizes_of_loops,
)
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel

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
_KEYLESS = '@triton.autotune([triton.Config({"B": 64}), triton.Config({"B": 128})], key=[])'
_SUM = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        total += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr, tl.sum(total))
"""
BAD = (_TUNED + _PRODUCT,)
GOOD = (
    # Told to be a size that the code is not specialised for.
    _TUNED + _PRODUCT.replace("triton.jit", 'triton.jit(do_not_specialize=["K"])'),
    _TUNED.replace('["M", "N"]', "KEY") + _PRODUCT,
    _KEYLESS.replace('triton.Config({"B": 64}), ', "") + _SUM,
)


@kernel_rule("medium", "performance", BAD, GOOD)
def autotune_key_misses_size(kernel: SourceKernel) -> Iterator[Fault]:
    """The key of triton.autotune leaves out a size that the kernel's loop runs to.

    The configuration that won for the first such size is then used for all: a short loop and a long one
    need other block sizes and numbers of stages. With an empty key the very first launch, however small,
    decides for all.

    Fix: add the size to the key; where it changes all the time, add a parameter that holds it rounded up to
    a power of two, and name that.
    """
    key = setting(kernel, "key")
    given = names(key)
    if key is None or given is None or configuration_count(kernel) == 1:
        return
    if not given:
        yield from _empty(key, kernel)
    elif {*given} & kernel.runtime_parameters:
        for size in sizes_of_loops(kernel):
            if not any(size.lower() in name.lower() for name in given):
                yield Fault(
                    key,
                    f"The loop of {kernel.node.name} runs as long as {size} says, and the key does not name "
                    f"{size}: what is best for its first value is used for all.",
                    f'Add "{size}" to the key.',
                    _key(*given, size),
                    severity="low",
                )


def _empty(key: ast.expr, kernel: SourceKernel) -> Iterator[Fault]:
    if sizes := sizes_of_loops(kernel):
        yield Fault(
            key,
            f"The first launch of {kernel.node.name} chooses the configuration for all sizes: its loop runs "
            f"as long as {', '.join(sizes)} says, and the key is empty.",
            f"Write key={_key(*sizes)}.",
            _key(*sizes),
        )


def _key(*sizes: str) -> str:
    return "[" + ", ".join(f'"{name}"' for name in sizes) + "]"
