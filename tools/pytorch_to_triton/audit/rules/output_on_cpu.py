"""Tensors of a launching function that pass from torch.empty or its kind straight to the kernel."""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.launched_tensors import allocation, callers_parameters, tensors_of
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import LaunchSite, SourceFile, SourceKernel

_KERNEL = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""
_RUN = """
def run(x):
    out = {}
    kernel[(1,)](x, out, x.numel(), B=64)
    return out
"""
BAD = (_KERNEL + _RUN.format("torch.empty(x.shape, dtype=x.dtype)"),)
GOOD = (
    # Run by the interpreter, on the CPU.
    _KERNEL + _RUN.format("torch.empty(x.shape)") + "\ndef test_run():\n    run(torch.randn(64))\n",
    'torch.set_default_device("cuda")\n' + _KERNEL + _RUN.format("torch.empty(x.shape)"),
)
_ALLOCATE = frozenset(f"torch.{name}" for name in ("empty", "zeros", "ones", "full", "empty_strided"))
_PLACED = frozenset({"device", "pin_memory", "out", None})
"""Keywords that place a tensor elsewhere; None: `**` may."""
_INPUTS = frozenset(f"torch.{name}" for name in ("rand", "randn", "randint", "tensor"))
_MOVES = frozenset({"cuda", "to"})
_DEFAULTS = frozenset({"set_default_device", "set_default_tensor_type"})


@kernel_rule("critical", "correctness", BAD, GOOD)
def output_on_cpu(kernel: SourceKernel) -> Iterator[Fault]:
    """An output is allocated without a device, so it lies in the CPU's memory.

    torch.empty and its kind allocate on the CPU unless a device is given. A GPU cannot write there: the
    launch raises ValueError (cannot be accessed from Triton).

    Fix: pass `device=x.device` of an input, or use torch.empty_like or `x.new_empty`.
    """
    for launch in kernel.launches:
        for parameter, name in tensors_of(launch, kernel).items():
            made = allocation(name, launch)
            if not made or made[0] not in _ALLOCATE or not _is_placed_nowhere(made[1], launch):
                continue
            if not _works_there(kernel.file):
                yield Fault(
                    made[1],
                    f"{name} is allocated in the CPU's memory and passed for {parameter}: the launch of "
                    f"{kernel.node.name} raises ValueError.",
                    "Pass the device of an input, as in `device=x.device`.",
                )


def _is_placed_nowhere(call: ast.Call, launch: LaunchSite) -> bool:
    """Whether nothing says where the tensor lies, neither a keyword nor a `with` around it."""
    return (
        not any(keyword.arg in _PLACED for keyword in call.keywords)
        and not any(isinstance(outer, ast.With) for outer in launch.flow.around(call))
        and bool(callers_parameters(launch))
    )


def _works_there(file: SourceFile) -> bool:
    """Whether the file sets a default device, or makes inputs without one, for the interpreter."""
    nodes = file.nodes
    moved = {node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr in _MOVES}
    inputs = (
        node
        for node in nodes
        if isinstance(node, ast.Call) and file.scope.path(node.func) in _INPUTS and node not in moved
    )
    return any(isinstance(node, ast.Attribute) and node.attr in _DEFAULTS for node in nodes) or any(
        not any(keyword.arg in _PLACED for keyword in call.keywords) for call in inputs
    )
