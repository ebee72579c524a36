"""Functions that launch kernels on tensors of their callers' without a look at their layout."""

import ast
from collections.abc import Iterator, Sequence

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers
from pytorch_to_triton.audit.analysis.launched_tensors import unknown_layouts
from pytorch_to_triton.audit.examples import LANES, jit, run
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import Unconfirmed, file_rule
from pytorch_to_triton.audit.source import Function, LaunchSite, SourceFile

_COPY = jit(LANES, "tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)")
_RUN = run("out = torch.empty_like(x)", "kernel[(1,)](x, out, x.numel(), B=64)", takes="x")
_BACKWARD = """
class Copy(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        out = torch.empty(ctx.shape, device="cuda")
        kernel[(1,)](grad{}, out, out.numel(), B=64)
        return out
"""


@file_rule(
    "critical",
    "correctness",
    bad=(_COPY + _RUN,),
    good=(_COPY + _RUN.replace("out =", "check_inputs(x)\n    out ="),),
    suspected=Unconfirmed("low", ("layout_ignored",)),
)
def assumes_contiguous(file: SourceFile) -> Iterator[Fault]:
    """A kernel reads a caller's tensor as if it were contiguous, and nothing makes sure that it is.

    Without the strides a kernel can only count elements as they lie in memory. Given a transposed or sliced
    tensor it reads other elements than the caller means, without an error.

    Fix: pass the strides and use them, call `.contiguous()`, or refuse with `assert x.is_contiguous()`.
    """
    called = {node.id for node in file.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for function, launches in launchers(file).items():
        is_open = not function.decorator_list and not function.name.startswith("_")
        names = _unknown(launches, file) if is_open and function.name not in called else []
        if names and not is_trial(file, function):
            yield Fault(
                launches[0].call,
                f"{function.name} passes {', '.join(names)} without strides and never checks the layout: "
                "given a transposed tensor, the kernel reads wrong elements.",
                f"Write {names[0]} = {names[0]}.contiguous() first, or pass the strides.",
            )


@file_rule(
    "medium",
    "correctness",
    bad=(_COPY + _BACKWARD.format(""),),
    good=(
        _COPY + _BACKWARD.format(".contiguous()"),
        _COPY + _BACKWARD.format("").replace("(torch.autograd.Function)", ""),
    ),
)
def gradient_layout_assumed(file: SourceFile) -> Iterator[Fault]:
    """A backward pass reads the gradient that it is given as if it were contiguous.

    Autograd passes gradients as they come: that of a sum is one value expanded over all elements, that of a
    transposed result is transposed. Flat offsets then read other elements, or beyond the end.

    Fix: call .contiguous() on the gradient first, or pass its strides.
    """
    for function, launches in launchers(file).items():
        names = _unknown(launches, file) if _is_backward(function, file) else []
        if names and not is_trial(file, function):
            yield Fault(
                launches[0].call,
                f"backward passes {', '.join(names)} without strides and never makes it contiguous: given an "
                "expanded or transposed gradient, as after .sum(), the kernel reads wrong elements.",
                f"Write {names[0]} = {names[0]}.contiguous() first, or pass the strides.",
            )


def _unknown(launches: Sequence[LaunchSite], file: SourceFile) -> list[str]:
    """The caller's tensors that launches pass untouched, each once."""
    return list(dict.fromkeys(name for launch in launches for name in unknown_layouts(launch)))


def _is_backward(function: Function, file: SourceFile) -> bool:
    """Whether autograd calls it: backward of a torch.autograd.Function, with no decorator that may help."""
    if function.name != "backward" or any(ast.unparse(d) != "staticmethod" for d in function.decorator_list):
        return False
    classes = (node for node in file.nodes if isinstance(node, ast.ClassDef) and function in node.body)
    bases = (file.scope.path(base) for owner in classes for base in owner.bases)
    return any(path in ("torch.autograd.Function", "torch.autograd.function.Function") for path in bases)
