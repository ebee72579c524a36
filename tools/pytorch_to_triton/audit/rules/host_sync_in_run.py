"""Waits that every call meets, in functions that launch a kernel and return its result.

Tests, benchmarks and the like, known by their names, wait on purpose."""

import ast
import re
from collections.abc import Iterator
from typing import get_args

from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import file_rule
from pytorch_to_triton.audit.source import Function, SourceFile
from pytorch_to_triton.triton_api.name_scope import Definition

_KERNEL = """
@triton.jit
def kernel(x_ptr, n):
    tl.store(x_ptr, n)
"""
BAD = (
    _KERNEL
    + """
def run(x, n):
    kernel[(1,)](x, n.item())
    return x
""",
    _KERNEL
    + """
def run(x, n):
    kernel[(1,)](x, n)
    torch.cuda.synchronize()
    return x
""",
)
GOOD = (
    _KERNEL
    + """
def test_run(x):
    kernel[(1,)](x, 1)
    torch.cuda.synchronize()
    return x.cpu()
""",
)

_MAY_NOT_RUN = (*get_args(Definition), ast.Lambda, ast.Try, ast.TryStar)
_NOT_HOT = re.compile(
    r"(?:^|_)(?:test|tests|bench|benchmark|profile|time|main|demo|check|verify|warmup)(?:_|$)"
)


@file_rule("medium", "performance", BAD, GOOD)
def host_sync_in_run(file: SourceFile) -> Iterator[Fault]:
    """A function that launches a kernel makes the CPU wait for the GPU.

    Launches are queued: the CPU runs ahead, and the GPU is never idle. `.item()`, `.cpu()` and
    torch.cuda.synchronize() wait until all queued work is done, so that the GPU then waits for the CPU in
    turn.

    Fix: keep values on the GPU: pass a tensor and load it in the kernel. Where a value sets a shape or a
    grid, let the caller pass it. Synchronize where results are used.
    """
    if _NOT_HOT.search(file.path.stem):
        return
    functions = {launch.function: launch.scope for launch in file.launches if launch.function}
    for function, scope in functions.items():
        if _NOT_HOT.search(function.name) or not _returns(function):
            continue
        for node in _always_run(function):
            if isinstance(node, ast.Call) and (what := _wait(node, scope.path(node.func))):
                yield Fault(
                    node,
                    f"{what} in {function.name} stops the CPU until the GPU has done all queued work.",
                    "Load the value in the kernel, or let the caller pass it; wait where results are used.",
                )


def _wait(call: ast.Call, path: str | None) -> str | None:
    """The call as text where it waits for the GPU."""
    if path == "torch.cuda.synchronize":
        return "torch.cuda.synchronize()"
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="item" | "cpu" as name), args=[], keywords=[]):
            return None if "cpu" in ast.unparse(owner) else f".{name}()"
    return None


def _returns(function: Function) -> bool:
    return any(isinstance(node, ast.Return) and node.value for node in _always_run(function))


def _always_run(function: Function) -> Iterator[ast.AST]:
    """The nodes that run whenever the function does, in source order; early returns are not considered."""
    ahead: list[ast.AST] = [*reversed(function.body)]
    while ahead:
        node = ahead.pop()
        yield node
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                ahead.append(test)
            case _ if not isinstance(node, _MAY_NOT_RUN):
                ahead += reversed([*ast.iter_child_nodes(node)])
