"""A failing kernel is replaced by something else without a word.

Whatever goes wrong in the launch, an invalid configuration, too much shared memory, a misspelt name, the
caller gets PyTorch's result at PyTorch's speed, or an output that was never written, and nobody learns why.

Fix: decide by what is known before, dtypes, shapes and the device, and let errors reach the caller; or
warn and catch just the one exception that is expected.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.callers import is_trial, launchers
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import SourceFile
from pytorch_to_triton.triton_api.name_scope import own_nodes

SEVERITY = "medium"
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
def run(x):
    out = torch.empty_like(x)
    try:
        kernel[(1,)](x, out, x.numel())
    except Exception:
        return x.clone()
    return out
""",
    _KERNEL
    + """
def copy(x, out):
    kernel[(1,)](x, out, x.numel())

def run(x, out):
    try:
        copy(x, out)
    except:
        pass
""",
)
GOOD = (
    _KERNEL
    + """
def run(x, out):
    try:
        kernel[(1,)](x, out, x.numel())
    except Exception as error:
        raise ValueError("x is too large") from error
""",
    _KERNEL
    + """
def run(x, out):
    try:
        kernel[(1,)](x, out, x.numel())
    except Exception as error:
        warnings.warn(f"the kernel failed: {error}")
        out.copy_(x)
""",
    _KERNEL
    + """
def run(x, out):
    try:
        kernel[(1,)](x, out, x.numel())
    except triton.runtime.errors.OutOfResources:
        out.copy_(x)
""",
    _KERNEL
    + """
def run(x, out):
    try:
        import cupy
    except Exception:
        cupy = None
    kernel[(1,)](x, out, x.numel())
""",
)
_ANY = frozenset({"Exception", "BaseException"})


def check(file: SourceFile) -> Iterator[Fault]:
    """Handlers of all exceptions around launches that neither raise nor tell anyone."""
    launching = launchers(file)
    names = {function.name for function in launching}
    for function, _ in file.functions if launching and not is_trial(file) else ():
        if is_trial(file, function):
            continue
        calls = {id(launch.call) for launch in launching.get(function, ())}
        for node in own_nodes(function.body):
            if not isinstance(node, ast.Try):
                continue
            tried = [one for one in own_nodes(node.body) if isinstance(one, ast.Call)]
            launched = next((one for one in tried if id(one) in calls or _name(one) in names), None)
            handler = next((one for one in node.handlers if _catches_all(one)), None)
            if launched and handler and _is_silent(handler):
                called = launched.func
                what = ast.unparse(called.value if isinstance(called, ast.Subscript) else called)
                yield Fault(
                    node,
                    f"When {what} fails for any reason, {function.name} goes on without a word.",
                    "Catch the one exception that is expected, or raise it again.",
                )


def _name(call: ast.Call) -> str | None:
    return call.func.id if isinstance(call.func, ast.Name) else None


def _catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or (isinstance(handler.type, ast.Name) and handler.type.id in _ANY)


def _is_silent(handler: ast.ExceptHandler) -> bool:
    """Whether it passes, or works on with what PyTorch computes; a call by itself may well tell someone."""
    nodes = [*own_nodes(handler.body)]
    if handler.name and any(isinstance(one, ast.Name) and one.id == handler.name for one in nodes):
        return False
    return not any(isinstance(one, ast.Raise | ast.Expr) for one in nodes) and any(
        isinstance(one, ast.Pass | ast.Call) for one in nodes
    )
