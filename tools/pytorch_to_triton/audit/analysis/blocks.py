"""What a kernel's values certainly are: blocks, or at least values that only a run knows."""

import ast
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import lru_cache

from pytorch_to_triton.audit.analysis.operations import ELEMENTWISE, SCALAR, Operation, operation_of
from pytorch_to_triton.audit.call_arguments import literal_integer, only_adds_axes, shape_of
from pytorch_to_triton.audit.source import SourceKernel


class Kind(IntEnum):
    """What is certain of a value; each says more than the one before."""

    UNKNOWN = 0
    """It may be known when the kernel is compiled, too."""
    RUNTIME = 1
    """A scalar or a block that only a run knows."""
    BLOCK = 2
    """A block of more than one element."""


_STATIC = ast.Is | ast.IsNot | ast.In | ast.NotIn


def kind(value: ast.expr, kernel: SourceKernel) -> Kind:
    """What an expression in the body of a kernel certainly is."""
    return _kind(value, kernel, kinds(kernel))


@lru_cache(maxsize=16)
def kinds(kernel: SourceKernel) -> Mapping[str, Kind]:
    """What each name certainly is that the body assigns, wherever it is read.

    Names start as blocks and are lowered to the least that is assigned to them, until nothing changes.
    """
    kinds_by_name = {name: Kind.BLOCK for name in kernel.scope.bindings if _assignments_of(name, kernel)}
    while lowered := {
        name: least
        for name, before in kinds_by_name.items()
        if (least := min(_kind(value, kernel, kinds_by_name) for value in _assignments_of(name, kernel)))
        < before
    }:
        kinds_by_name |= lowered
    return kinds_by_name


def runs_for_sure(node: ast.AST, kernel: SourceKernel) -> bool:
    """Whether the compiler certainly meets a node: no condition around it is decided when compiling."""
    return all(kind(test, kernel) > Kind.UNKNOWN for test in kernel.flow.conditions(node))


def _assignments_of(name: str, kernel: SourceKernel) -> tuple[ast.expr, ...]:
    """What plain assignments give a name; empty where anything else binds it."""
    bindings = kernel.scope.bindings[name]
    feeds = kernel.flow.feeds(name)
    around = [kernel.flow.parents.get(value) for value in feeds]
    if len(bindings) != len(feeds) or any(isinstance(one, ast.For | ast.comprehension) for one in around):
        return ()
    return tuple(
        value for value, one in zip(feeds, around, strict=True) if not isinstance(one, ast.AugAssign)
    )


def _kind(value: ast.expr, kernel: SourceKernel, names: Mapping[str, Kind]) -> Kind:
    match value:
        case ast.Name(id=name):
            return names.get(name, Kind.UNKNOWN)
        case ast.BinOp(left=left, right=right):
            return _most((left, right), kernel, names)
        case ast.Compare(left=left, ops=ops, comparators=others):
            if any(isinstance(op, _STATIC) for op in ops):
                return Kind.UNKNOWN
            return _most((left, *others), kernel, names)
        case ast.UnaryOp(operand=operand) | ast.NamedExpr(value=operand):
            return _kind(operand, kernel, names)
        case ast.BoolOp(values=parts):
            return min(_kind(part, kernel, names) for part in parts)
        case ast.IfExp(body=body, orelse=orelse):
            return min(_kind(body, kernel, names), _kind(orelse, kernel, names))
        case ast.Subscript(value=inner, slice=index) if only_adds_axes(index):
            return _kind(inner, kernel, names)
        case ast.Call():
            return _kind_of_call(value, kernel, names)
    return Kind.UNKNOWN


def _kind_of_call(call: ast.Call, kernel: SourceKernel, names: Mapping[str, Kind]) -> Kind:
    operation = operation_of(call, kernel.scope)
    match operation:
        case None:
            return Kind.UNKNOWN
        case Operation(name="load", operands=operands):
            return max(Kind.RUNTIME, _most(operands[:1], kernel, names))
        case Operation(name="arange", operands=[first, last]):
            start, end = literal_integer(first), literal_integer(last)
            is_one = start is not None and end is not None and end - start == 1
            return Kind.UNKNOWN if is_one else Kind.BLOCK
        case Operation(name="zeros" | "full" as name):
            sizes = shape_of(f"triton.language.{name}", call)
            return Kind.BLOCK if any(literal_integer(size) != 1 for size in sizes) else Kind.UNKNOWN
        case Operation(name="dot"):
            return Kind.BLOCK
        case Operation(name="to", operands=[block, *_]):
            return _kind(block, kernel, names)
    if operation.name in SCALAR:
        return Kind.RUNTIME
    return _most(operation.operands, kernel, names) if operation.name in ELEMENTWISE else Kind.UNKNOWN


def _most(values: Iterable[ast.expr], kernel: SourceKernel, names: Mapping[str, Kind]) -> Kind:
    return max((_kind(value, kernel, names) for value in values), default=Kind.UNKNOWN)
