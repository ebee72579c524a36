"""A variable starts as a number and becomes a block, or a float, in a loop.

What a loop carries on must keep its type and shape. Triton refuses `total = 0` before a loop that adds a block to
it, or `total = 0` before one that adds 0.5. The interpreter accepts both.

Instead, start with what the loop makes: tl.zeros((BLOCK,), dtype=tl.float32), or 0.0 for a single float.
"""

import ast
from collections.abc import Iterator

from pytorch_to_triton.audit.blocks import Kind, kind, runs_for_sure
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.source import Kernel

SEVERITY = "critical"
CATEGORY = "correctness"
BAD = (
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    total = 0.0
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        total += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(x_ptr, tl.sum(total))
""",
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    largest = -float("inf")
    for start in tl.range(0, n, B):
        largest = tl.maximum(largest, tl.load(x_ptr + start + tl.arange(0, B)))
    tl.store(x_ptr, tl.max(largest))
""",
    """
@triton.jit
def kernel(x_ptr, n):
    total = 0
    for i in range(n):
        total += 0.5 * tl.load(x_ptr + i)
    tl.store(x_ptr, total)
""",
)
GOOD = (
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    total = tl.zeros((B,), tl.float32)
    count = 0
    mean = 0.0
    for start in range(0, n, B):
        x = tl.load(x_ptr + start + tl.arange(0, B)).to(tl.float32)
        total += x
        mean += tl.sum(x)
        count += 1
    tl.store(x_ptr, tl.sum(total) / count + mean)
""",
    # Unrolled loops carry nothing.
    """
@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    total = 0
    for start in tl.static_range(4):
        total += tl.load(x_ptr + start + tl.arange(0, B))
    tl.store(x_ptr, tl.sum(total))
""",
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    for start in range(0, n, B):
        total = 0.0
        total += tl.load(x_ptr + start + tl.arange(0, B))
        tl.store(x_ptr, tl.sum(total))
""",
    """
@triton.jit
def kernel(x_ptr, n, B: tl.constexpr):
    total = 0.0
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        total += tl.load(x_ptr + start + tl.arange(0, B))
    tl.store(x_ptr, tl.sum(total))
""",
)
_LOOPS = frozenset({"triton.language.range"})


def check(kernel: Kernel) -> Iterator[Fault]:
    """Each name that is given a number once before a loop, and a block or a float in it."""
    for node in kernel.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_number(value):
                pass
            case _:
                continue
        if not runs_for_sure(node, kernel):
            continue
        changes = [(one, loop) for one in kernel.nodes if (loop := _carrier(one, name, node, kernel))]
        if len(changes) + 1 != len(kernel.scope.bindings[name]) or not kernel.scope.parent:
            continue
        for change, _ in changes:
            if what := _becomes(change, value, kernel):
                yield Fault(
                    change,
                    f"{name} starts as {ast.unparse(value)} and becomes {what} in the loop: "
                    "Triton refuses what changes its type there.",
                    f"Start {name} with tl.zeros or tl.full of the block's shape."
                    if what == "a block"
                    else f"Start {name} with {ast.unparse(value)}.0.",
                )
                break


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()) | ast.Call(func=ast.Name(id="float"), args=[ast.Constant()]):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(operand)
    return False


def _carrier(node: ast.AST, name: str, start: ast.AST, kernel: Kernel) -> ast.For | ast.While | None:
    """The loop after `start` that runs an assignment of the name, where it is one; None for any other node."""
    match node:
        case ast.Assign(targets=[ast.Name(id=assigned)]) | ast.AugAssign(target=ast.Name(id=assigned)):
            pass
        case _:
            return None
    carrying = [loop for loop in kernel.flow.loops(node) if not _is_unrolled(loop, kernel)]
    around = {*kernel.flow.around(start)}
    outside = [loop for loop in carrying if loop not in around]
    if assigned != name or not outside or len(outside) != len(carrying) - len(around & {*carrying}):
        return None
    return outside[-1] if outside[-1].lineno > getattr(start, "lineno", 0) else None


def _is_unrolled(loop: ast.For | ast.While, kernel: Kernel) -> bool:
    """Whether it is anything but `while` or `for` over range or tl.range."""
    if isinstance(loop, ast.While):
        return False
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else loop.iter
    is_range = isinstance(called, ast.Name) and called.id == "range"
    return not is_range and kernel.scope.path(called) not in _LOOPS


def _becomes(change: ast.AST, start: ast.expr, kernel: Kernel) -> str | None:
    """What an assignment certainly turns the number into."""
    if not isinstance(change, ast.Assign | ast.AugAssign) or not runs_for_sure(change, kernel):
        return None
    if kind(change.value, kernel) == Kind.BLOCK:
        return "a block"
    is_whole = not any(
        isinstance(node, ast.Constant) and isinstance(node.value, float | str) for node in ast.walk(start)
    )
    return "a float" if is_whole and _is_float(change) else None


def _is_float(change: ast.Assign | ast.AugAssign) -> bool:
    """Whether a sum or product has a literal float in it, or is a quotient."""
    value = change.value
    if isinstance(change, ast.AugAssign) and isinstance(change.op, ast.Div):
        return True
    ahead = [value]
    while ahead:
        match ahead.pop():
            case ast.Constant(value=float()) | ast.BinOp(op=ast.Div()):
                return True
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                ahead += [left, right]
            case ast.UnaryOp(operand=operand):
                ahead.append(operand)
    return False
