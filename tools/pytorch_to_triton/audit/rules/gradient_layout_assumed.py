"""A backward pass reads the gradient that it is given as if it were contiguous.

Autograd passes gradients as they come: that of a sum is one value expanded over all elements, that of a
transposed result is transposed. Flat offsets then read other elements, or beyond the end.

Fix: call .contiguous() on the gradient first, or pass its strides.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers
from pytorch_to_triton.audit.analysis.launched_tensors import unknown_layouts
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Function, SourceFile

SEVERITY = "medium"
CATEGORY = "correctness"
_KERNEL = """
@triton.jit
def kernel(g_ptr, dx_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(dx_ptr + i, 2 * tl.load(g_ptr + i, mask=i < n), mask=i < n)

class Double(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
"""
_BACKWARD = (
    _KERNEL
    + """
        {first}
        dx = torch.empty(grad.shape, device="cuda")
        kernel[(triton.cdiv(dx.numel(), 64),)](grad, dx, dx.numel(), B=64)
        return dx
"""
)
BAD = (_BACKWARD.format(first="pass"),)
GOOD = (
    _BACKWARD.format(first="pass").replace("@staticmethod", "@staticmethod\n    @contiguous_inputs"),
    # Whoever calls it decides.
    _BACKWARD.format(first="pass").replace("(torch.autograd.Function)", ""),
    # One value for all.
    _BACKWARD.format(first="pass").replace("tl.load(g_ptr + i, mask=i < n)", "tl.load(g_ptr)"),
)


def check(file: SourceFile) -> Iterator[Fault]:
    """Launches in backward of a torch.autograd.Function; one finding a function."""
    for function, launches in launchers(file).items():
        if is_trial(file, function) or not _is_backward(function, file):
            continue
        found: list[str] = []
        for launch in launches:
            kernel = file.kernel_of(launch)
            found += [name for name in unknown_layouts(launch, kernel) if name not in found] if kernel else []
        if found:
            yield Fault(
                launches[0].call,
                f"backward passes {', '.join(found)} without strides and never makes it contiguous: given an "
                "expanded or transposed gradient, as after .sum(), the kernel reads wrong elements.",
                f"Write {found[0]} = {found[0]}.contiguous() first, or pass the strides.",
            )


def _is_backward(function: Function, file: SourceFile) -> bool:
    """Whether autograd calls it: backward of a torch.autograd.Function, with no decorator that may help."""
    if function.name != "backward" or any(
        ast.unparse(one) != "staticmethod" for one in function.decorator_list
    ):
        return False
    classes = (node for node in file.nodes if isinstance(node, ast.ClassDef) and function in node.body)
    bases = (file.scope.path(base) for owner in classes for base in owner.bases)
    return any(path in ("torch.autograd.Function", "torch.autograd.function.Function") for path in bases)
