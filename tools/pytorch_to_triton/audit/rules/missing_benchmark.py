"""Nothing near by measures what a file with kernels offers.

A kernel is written for its speed. Without a measurement nobody knows whether it is faster than PyTorch, for
which shapes, and since when no longer.

Fix: time it against PyTorch with triton.testing.do_bench over the shapes that matter.
"""

import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import BENCHMARKS, is_named_near, is_trial, launchers, offered
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile

SEVERITY = "info"
CATEGORY = "best practices"
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
_RUN = "\ndef copy_unmeasured_block(x, out):\n    kernel[(1,)](x, out, x.numel())\n"
BAD = (
    _KERNEL + _RUN,
    _KERNEL + _RUN + "\ndef pressed_copy_of_it(x):\n    return x\n",
)
GOOD = (
    _KERNEL
    + _RUN
    + "\ndef measure(x):\n    return triton.testing.do_bench(lambda: copy_unmeasured_block(x, x))\n",
    _KERNEL + _RUN + "\ndef benchmark(x):\n    copy_unmeasured_block(x, x)\n",
    _KERNEL,
)
_MEASURES = re.compile(r"do_bench|perf_report|[Bb]enchmark|timeit|cuda\.Event")


def check(file: SourceFile) -> Iterator[Fault]:
    """The first function that launches, where neither the file nor a benchmark near by measures it."""
    first = min(launchers(file), key=lambda function: function.lineno, default=None)
    names = offered(file)
    if first is None or not names or is_trial(file) or _MEASURES.search(file.text):
        return
    if not is_named_near(names, file.path, *BENCHMARKS):
        yield Fault(
            first,
            f"Nothing beside {file.path.name}, or in a benchmarks folder above it, measures what is in it.",
            "Time it against PyTorch with triton.testing.do_bench.",
        )
