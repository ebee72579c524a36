"""No test near by names what a file with kernels offers.

A kernel that is right for one shape is often wrong for the next: odd sizes, empty inputs, other dtypes,
layouts that are not contiguous.

Fix: compare with PyTorch in a test over such shapes.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import TESTS, is_named_near, is_trial, launchers, offered
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
_RUN = "\ndef copy_untested_block(x, out):\n    kernel[(1,)](x, out, x.numel())\n"
BAD = (
    _KERNEL + _RUN,
    _KERNEL + _RUN + "\ndef checked_copy_of_it(x):\n    return x\n",
)
GOOD = (
    _KERNEL + _RUN + "\ndef test_copy():\n    copy_untested_block(1, 2)\n",
    _KERNEL + _RUN + "\nclass TestCopy:\n    def test_it(self):\n        pass\n",
    _KERNEL,
)


def check(file: SourceFile) -> Iterator[Fault]:
    """The first function that launches, where neither the file nor a test near by tests anything in it."""
    first = min(launchers(file), key=lambda function: function.lineno, default=None)
    names = offered(file)
    if first is None or not names or is_trial(file):
        return
    has_own = any(function.name.startswith("test_") for function, _ in file.functions)
    if not has_own and not is_named_near(names, file.path, *TESTS):
        yield Fault(
            first,
            f"No test beside {file.path.name}, or in a tests folder above it, names what is in it.",
            "Compare it with PyTorch over odd sizes, all dtypes and layouts that are not contiguous.",
        )
