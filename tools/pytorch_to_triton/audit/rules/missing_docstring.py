"""A public function that launches a kernel says nothing about itself.

What shapes, dtypes and layouts it takes, and what it returns, cannot be read from the launch.

Fix: write a docstring: what it computes, the shapes and dtypes it takes, and how exact the result is.
"""

from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import has_comment, is_trial, launchers
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
BAD = (
    _KERNEL
    + """
def run(x, out):
    kernel[(1,)](x, out, x.numel())
""",
    _KERNEL
    + """
def run(x, out):
    assert x.is_cuda
    kernel[(1,)](x, out, x.numel())  # one program
""",
)
GOOD = (
    _KERNEL
    + """
def run(x, out):
    'Copies x to out.'
    kernel[(1,)](x, out, x.numel())
""",
    _KERNEL
    + """
# Copies x to out.
def run(x, out):
    kernel[(1,)](x, out, x.numel())
""",
    _KERNEL
    + """
def _run(x, out):
    kernel[(1,)](x, out, x.numel())

def test_run(x, out):
    kernel[(1,)](x, out, x.numel())
""",
    _KERNEL
    + """
class Copy(torch.nn.Module):
    def forward(self, x, out):
        kernel[(1,)](x, out, x.numel())
""",
)
_METHODS = frozenset({"forward", "backward", "setup_context"})
"""What they are for is known; the class says the rest."""


def check(file: SourceFile) -> Iterator[Fault]:
    """Public functions with neither docstring nor comment at their head."""
    for function in launchers(file) if not is_trial(file) else ():
        name = function.name
        if (
            name.startswith("_")
            or name in _METHODS
            or is_trial(file, function)
            or has_comment(function, file)
        ):
            continue
        yield Fault(
            function,
            f"{name} launches a kernel and has no docstring.",
            "Say what it computes, and which shapes, dtypes and layouts it takes.",
        )
