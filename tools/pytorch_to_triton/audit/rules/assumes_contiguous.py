"""A kernel reads a caller's tensor as if it were contiguous, and nothing makes sure that it is.

Without the strides a kernel can only count elements as they lie in memory. Given a transposed or sliced
tensor it reads other elements than the caller means, without an error.

Fix: pass the strides and use them, call `.contiguous()`, or refuse with `assert x.is_contiguous()`.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers
from pytorch_to_triton.audit.analysis.launched_tensors import unknown_layouts
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Function, SourceFile

SEVERITY = "critical"
CATEGORY = "correctness"
SUSPECTED = "low"
CONFIRMED_BY = ("layout_ignored",)
_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
_RUN = """
def run(x):
    {}
    out = torch.empty_like(x)
    kernel[(1,)](x, out, x.numel(), B=64)
    return out
"""
BAD = (_KERNEL + _RUN.format("pass"),)
GOOD = (
    _KERNEL + _RUN.format("check_inputs(x)"),
    _KERNEL + "@contiguous_inputs" + _RUN.format("pass"),
    # Its callers take care.
    _KERNEL + _RUN.format("pass") + "\ndef entry(x):\n    return run(x.contiguous())\n",
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Launching functions that pass parameters of theirs untouched; one finding a function."""
    called = {node.id for node in file.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for function, launches in launchers(file).items():
        if is_trial(file, function) or function.name in called or not _is_open(function):
            continue
        found: list[str] = []
        for launch in launches:
            kernel = file.kernel_of(launch)
            found += [name for name in unknown_layouts(launch, kernel) if name not in found] if kernel else []
        if found:
            are, them = ("it is", "it") if len(found) == 1 else ("they are", "them")
            yield Fault(
                launches[0].call,
                f"{function.name} passes {', '.join(found)} without strides and never checks whether {are} "
                "contiguous: given a transposed tensor, the kernel reads wrong elements.",
                f"Call .contiguous() on {them} first, or pass the strides.",
            )


def _is_open(function: Function) -> bool:
    """Whether callers from outside reach a function as it stands."""
    return not function.decorator_list and not function.name.startswith("_")
