"""A kernel walks over elements one by one with scalar loads.

A program is a whole group of threads. A scalar load moves one element and leaves all other threads idle, so
that the loop runs at a small fraction of the memory's speed.

Instead, load a block with `offsets = start + tl.arange(0, BLOCK)` and a mask, step the loop by BLOCK, and
use tl.sum, tl.max and the like for what the loop accumulates.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.analysis.movement import (
    accesses_in,
    bound_in,
    calls_unknown,
    is_entry,
    is_scalar,
    names_in,
)
from pytorch_to_triton.audit.analysis.passed import size_of
from pytorch_to_triton.audit.call_arguments import literal_integer
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import KernelAccess, SourceKernel

SEVERITY = "medium"
CATEGORY = "performance"
_HEAD = """
@triton.jit
def kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    row = tl.program_id(0)
"""
BAD = (
    _HEAD
    + """
    total = 0.0
    for i in range(n):
        total += tl.load(x_ptr + row * n + i)
    tl.store(out_ptr + row, total)
""",
    _HEAD
    + """
    for i in range(0, n):
        x = tl.load(x_ptr + row * n + i)
        tl.store(out_ptr + row * n + i, tl.exp(x))
""",
    _HEAD
    + """
    best = -float("inf")
    start = x_ptr + row * n
    for i in tl.range(n):
        x = tl.load(start + i)
        best = tl.maximum(best, x)
    tl.store(out_ptr + row, best)
""",
)
GOOD = (
    # The running mean of all before it.
    _HEAD
    + """
    mean = 0.0
    for i in range(n):
        delta = tl.load(x_ptr + row * n + i) - mean
        mean += delta / (i + 1)
    tl.store(out_ptr + row, mean)
""",
    _HEAD
    + """
    i = tl.arange(0, B)
    total = 0.0
    for start in range(0, n, B):
        total += tl.sum(tl.load(x_ptr + row * n + start + i, mask=start + i < n, other=0.0))
    tl.store(out_ptr + row, total)
""",
    # A recurrence.
    _HEAD
    + """
    h = 0.0
    for t in range(n):
        h = 0.5 * h + tl.load(x_ptr + row * n + t)
        tl.store(out_ptr + row * n + t, h)
""",
    # A scalar that places a block.
    _HEAD
    + """
    total = tl.zeros((B,), tl.float32)
    for i in range(n):
        at = tl.load(x_ptr + i).to(tl.int32)
        total += tl.load(out_ptr + at * B + tl.arange(0, B))
    tl.store(out_ptr + tl.arange(0, B), total)
""",
    _HEAD
    + """
    for i in range(1, n):
        tl.store(out_ptr + i, tl.load(out_ptr + i - 1) + 1)
""",
    _HEAD
    + """
    total = 0.0
    for i in range(4):
        total += tl.load(x_ptr + row * 4 + i)
    tl.store(out_ptr + row, total)
""",
)
_SHORT = 32
"""Iterations that are not worth a block."""


def check(kernel: SourceKernel) -> Iterator[Fault]:
    """Innermost loops that count one by one, compute with scalars alone, and could run in any order."""
    if not is_entry(kernel):
        return
    for loop in kernel.nodes:
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name) or loop.orelse:
            continue
        if not _is_plain(kernel, loop) or not _is_long(kernel, loop):
            continue
        accesses = accesses_in(kernel, loop)
        load = next((one for one in accesses if one.name == "load" and _walks(kernel, loop, one)), None)
        if load and not _feeds_back(accesses) and not _recurs(kernel, loop):
            yield Fault(
                load.call,
                f"The loop at line {loop.lineno} loads {load.pointer or 'memory'} one element at a time: one "
                "thread works, the others of the program wait.",
                "Load a block of tl.arange(0, BLOCK) elements at a time with a mask; reduce it with tl.sum "
                "or its kind.",
            )


def _is_long(kernel: SourceKernel, loop: ast.For) -> bool:
    """`for i in range(n)` with a runtime n, or one that is certainly large."""
    match loop.iter:
        case ast.Call(func=func, args=[*arguments]) if 0 < len(arguments) < 4:
            builtin = isinstance(func, ast.Name) and func.id == "range" and not kernel.scope.holder("range")
            if not builtin and kernel.scope.path(func) != "triton.language.range":
                return False
            if len(arguments) == 3 and literal_integer(arguments[2]) != 1:
                return False
            end = arguments[0] if len(arguments) == 1 else arguments[1]
            length = literal_integer(kernel.flow.resolved(end))
            if length is not None:
                return length > _SHORT
            return any(_is_runtime(kernel, name) for name in kernel.flow.parameters(end))
    return False


def _is_runtime(kernel: SourceKernel, parameter: str) -> bool:
    """Whether a parameter is no constexpr, or one that a launch gives a tensor's size."""
    if parameter in kernel.runtime_parameters:
        return True
    given = [launch.given(kernel).get(parameter) for launch in kernel.launches]
    sizes = (
        size_of(one, launch) for one, launch in zip(given, kernel.launches, strict=True) if one is not None
    )
    return any(size is not None for size in sizes)


def _is_plain(kernel: SourceKernel, loop: ast.For) -> bool:
    """No loop, branch or unknown call within, and nothing but scalars."""
    branches = (ast.For, ast.While, ast.If)
    inside = [node for statement in loop.body for node in ast.walk(statement)]
    if any(isinstance(node, branches) for node in inside) or calls_unknown(kernel, loop):
        return False
    if any(access.name.startswith("atomic") for access in accesses_in(kernel, loop)):
        return False
    return is_scalar(kernel, *loop.body)


def _walks(kernel: SourceKernel, loop: ast.For, load: KernelAccess) -> bool:
    """Whether the address moves with the loop, and nothing that was loaded decides it."""
    calls = (path for path, _ in kernel.flow.calls(load.address))
    targets = names_in(*(node for node in kernel.flow.origins(load.address) if isinstance(node, ast.Name)))
    return names_in(loop.target) <= targets and "triton.language.load" not in calls


def _feeds_back(accesses: tuple[KernelAccess, ...]) -> bool:
    """Whether an iteration may load what another has stored."""
    stored = {one.pointer: ast.dump(one.address) for one in accesses if one.writes}
    return None in stored or any(
        stored.get(one.pointer, ast.dump(one.address)) != ast.dump(one.address) for one in accesses
    )


def _recurs(kernel: SourceKernel, loop: ast.For) -> bool:
    """Whether an iteration needs another's result for more than a sum, a maximum or a minimum."""
    before = {name for name in bound_in(*loop.body) if _is_carried(name, loop)}
    for statement in loop.body:
        for name in bound_in(statement) & before:
            added = _added(kernel, statement, name)
            if added is None or names_in(*kernel.flow.origins(added)) & before:
                return True
    return False


def _is_carried(name: str, loop: ast.For) -> bool:
    """Whether an iteration may read what the one before assigned: the first to name it reads it."""
    first = next(statement for statement in loop.body if name in names_in(statement))
    return not isinstance(first, ast.Assign) or name in names_in(first.value)


def _added(kernel: SourceKernel, statement: ast.stmt, name: str) -> ast.expr | None:
    """What a statement adds to a name, or compares it with; None for all else."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=target), op=ast.Add() | ast.Sub() | ast.Mult(), value=value):
            return value if target == name else None
        case ast.Assign(
            targets=[ast.Name()],
            value=ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right)
            | ast.Call(args=[left, right], keywords=[]) as value,
        ):
            if isinstance(value, ast.Call) and not _compares(kernel, value):
                return None
            others = [one for one in (left, right) if not (isinstance(one, ast.Name) and one.id == name)]
            return others[0] if len(others) == 1 else None
    return None


def _compares(kernel: SourceKernel, call: ast.Call) -> bool:
    path = kernel.scope.path(call.func)
    builtin = isinstance(call.func, ast.Name) and call.func.id in ("max", "min")
    return builtin or path in ("triton.language.maximum", "triton.language.minimum")
