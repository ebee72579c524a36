"""Each name that is given a number or an int32 once before a loop, and another type in it."""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from pytorch_to_triton.audit.examples import ROW, jit
from pytorch_to_triton.audit.fault import Fault
from pytorch_to_triton.audit.rule import kernel_rule
from pytorch_to_triton.audit.source import SourceKernel
from pytorch_to_triton.audit.value_types import Kind

_START = {
    "a block": "Start {name} with tl.zeros or tl.full of the block's shape.",
    "a float": "Start {name} with {begins}.0.",
    "int64": "Start {name} as int64, or convert with .to(tl.int32) what the loop assigns.",
}
"""What to write instead, by what the variable becomes."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """A value that a name is given, or that is added to it."""

    value: ast.expr
    statement: ast.Assign | ast.AugAssign


@kernel_rule(
    "critical",
    "correctness",
    bad=(jit(ROW, "total = 0.0", "for k in range(0, n, B):", "    total += tl.load(x_ptr + k + i)"),),
    good=(
        jit(
            "total = tl.zeros((B,), tl.float32)",
            "count = 0",
            "mean = 0.0",
            "for start in range(0, n, B):",
            "    x = tl.load(x_ptr + start + tl.arange(0, B)).to(tl.float32)",
            "    total += x",
            "    mean += tl.sum(x)",
            "    count += 1",
        ),
    ),
)
def loop_carried_type_change(kernel: SourceKernel) -> Iterator[Fault]:
    """A variable starts as a number and becomes a block, a float or a wider integer in a loop.

    What a loop carries on must keep its type and shape. Triton refuses `total = 0` before a loop that adds
    a block to it, or `total = 0` before one that adds 0.5, or an int32 start of what the loop makes int64.
    The interpreter accepts all of them.

    Fix: start with what the loop makes: tl.zeros((BLOCK,), dtype=tl.float32), or 0.0 for a single float.
    """
    for name in kernel.scope.bindings:
        start, *changes = _assignments(name, kernel) or (None,)
        if start is None or not changes or not kernel.runs_for_sure(start.statement):
            continue
        if not _is_number(start.value) and kernel.dtype(start.value) != "int32":
            continue
        around = {*kernel.around(start.statement)}
        # A loop that is not unrolled, and does not contain the start, assigns the name.
        loops = [{*kernel.loops(change.statement)} - around for change in changes]
        if not all(any(not _is_unrolled(loop, kernel) for loop in outer) for outer in loops):
            continue
        faults = ((change, what) for change in changes if (what := _becomes(change, start.value, kernel)))
        for change, what in itertools.islice(faults, 1):
            begins = ast.unparse(start.value) if _is_number(start.value) else "int32"
            is_one = isinstance(change.statement, ast.AugAssign) or isinstance(
                change.statement.targets[0], ast.Name
            )
            yield Fault(
                change.statement if is_one else change.value,
                f"{name} starts as {begins} and becomes {what} in the loop: Triton refuses that.",
                _START[what].format(name=name, begins=begins),
            )


def _assignments(name: str, kernel: SourceKernel) -> list[Assignment]:
    """All that a name is given, in source order; empty where anything but assignments binds it."""
    given = [kernel.written(value) for value in kernel.feeds(name)]
    outer = [next(one for one in kernel.around(value) if isinstance(one, ast.stmt)) for value in given]
    assignments = [
        Assignment(value, statement)
        for value, statement in zip(given, outer, strict=True)
        if isinstance(statement, ast.Assign | ast.AugAssign)
    ]
    return assignments if len(assignments) == len(kernel.scope.bindings[name]) else []


def _is_number(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()) | ast.Call(func=ast.Name(id="float"), args=[ast.Constant()]):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(operand)
    return False


def _is_unrolled(loop: ast.For | ast.While, kernel: SourceKernel) -> bool:
    """Whether it is anything but `while` or `for` over range or tl.range."""
    return isinstance(loop, ast.For) and not kernel.is_a(loop.iter, "range")


def _becomes(change: Assignment, start: ast.expr, kernel: SourceKernel) -> str | None:
    """What an assignment certainly turns the number, or the int32, into."""
    if not kernel.runs_for_sure(change.statement):
        return None
    if _is_number(start) and kernel.kind(change.value) == Kind.BLOCK:
        return "a block"
    is_whole = not _is_number(start) or _is_whole(start)
    if is_whole and kernel.dtype(change.value) == "int64":
        return "int64"
    return "a float" if is_whole and _is_number(start) and _is_float(change) else None


def _is_whole(start: ast.expr) -> bool:
    """Whether a start consists of whole numbers that int32 holds."""
    constants = [node.value for node in ast.walk(start) if isinstance(node, ast.Constant)]
    return all(isinstance(value, int) and value < 2**31 for value in constants)


def _is_float(change: Assignment) -> bool:
    """Whether a sum or product has a literal float in it, or is a quotient."""
    if isinstance(change.statement, ast.AugAssign) and isinstance(change.statement.op, ast.Div):
        return True
    ahead = [change.value]
    while ahead:
        match ahead.pop():
            case ast.Constant(value=float()) | ast.BinOp(op=ast.Div()):
                return True
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                ahead += [left, right]
            case ast.UnaryOp(operand=operand):
                ahead.append(operand)
    return False
