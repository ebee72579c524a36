"""A file with kernels has nothing to compare their results with.

A few lines of PyTorch that compute the same thing say what the kernel is meant to do, and let every change be
checked.

Fix: add a function such as `softmax_reference`, and compare the two over odd shapes and all dtypes.
"""

import re
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers
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
_RUN = "\ndef copy(x, out):\n    kernel[(1,)](x, out, x.numel())\n"
BAD = (
    _KERNEL + _RUN,
    _KERNEL + _RUN + "\ndef preferred(x):\n    return x.shape\n",
)
GOOD = (
    _KERNEL + _RUN + "\ndef copy_reference(x):\n    return x.clone()\n",
    _KERNEL + _RUN + "\ndef naive_copy(x):\n    return x.clone()\n",
    _KERNEL + _RUN + "\ndef test_copy():\n    assert True\n",
    "from references import copy_ref\n" + _KERNEL + _RUN,
    _KERNEL,
)
_REFERENCE = re.compile(
    r"(?:^|_)(?:ref|reference|torch|pytorch|naive|eager|golden|expected|baseline|native|test|check)(?:_|$)",
    re.IGNORECASE,
)


def check(file: SourceFile) -> Iterator[Fault]:
    """The first function that launches, where no name in the file tells of a reference or a test."""
    first = min(launchers(file), key=lambda function: function.lineno, default=None)
    if first is None or is_trial(file):
        return
    imported = [one for one in file.scope.bindings if one not in ("torch", "triton")]
    names = [*imported, *(function.name for function, _ in file.functions)]
    if not any(_REFERENCE.search(name) for name in names):
        yield Fault(
            first,
            f"Nothing in this file says in PyTorch what {first.name} computes.",
            "Add a few lines of PyTorch that compute the same, and compare the two.",
        )
