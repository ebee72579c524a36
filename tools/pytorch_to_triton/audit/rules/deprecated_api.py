"""A file uses a name of Triton's that every call warns about.

The next release may lack it, and the kernel will not compile there.

Fix: use what took its place: tl.make_tensor_descriptor for block pointers, tl.reshape for tl.view.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile

SEVERITY = "low"
CATEGORY = "best practices"
BAD = (
    """
@triton.jit
def kernel(x_ptr):
    x = tl.view(tl.load(x_ptr + tl.arange(0, 16)), (4, 4))
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr):
    x = tl.reshape(tl.load(x_ptr + tl.arange(0, 16)), (4, 4))
""",
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Names that the installed Triton has, and warns about."""
    for misuse in file.misuses:
        if misuse.fault == "deprecated":
            yield Fault(misuse.at, misuse.message, misuse.suggestion)
