"""Triton's functions: calls under one name, what they do to blocks and dtypes, and so what values are."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from pytorch_to_triton.audit.call_arguments import literal_integer, only_adds_axes, shape_of
from pytorch_to_triton.audit.source import SourceKernel
from pytorch_to_triton.triton_api.name_scope import NameScope


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FLOATING = _names("exp exp2 log log2 log1p sigmoid tanh sqrt sqrt_rn rsqrt sin cos erf")
"""Element by element, with floats as results."""
ELEMENTWISE = FLOATING | _names("abs ceil floor fma maximum minimum clamp where div_rn fdiv")
KEEPING = _names("reshape view broadcast_to expand_dims cast to")
"""They give the values of their first operand, in another shape or dtype."""
KEEPING_DTYPE = KEEPING | _names("sum max min abs trans zeros_like")
SCALAR = _names("program_id num_programs sum max min argmax argmin xor_sum")
"""Their results are known to a run alone, and may be scalars."""
METHODS = FLOATING | _names("sum max min abs to")
"""They are methods of blocks, too."""


_MODULES = ("math", "standard", "extra.libdevice", "extra.cuda.libdevice", "core")
_FIRST = ("x", "input")
"""The names of the first parameter."""


@dataclass(frozen=True, eq=False)
class Operation:
    """A call of one of Triton's functions or of a block's methods."""

    call: ast.Call
    name: str
    """`exp` for tl.exp(x), tl.math.exp(x), libdevice.exp(x) and x.exp()."""
    operands: tuple[ast.expr, ...]
    """Its positional arguments; the block is the first one of a method."""

    def option(self, position: int, name: str) -> ast.expr | None:
        """The operand at that position, or the keyword of that name."""
        named = next((keyword.value for keyword in self.call.keywords if keyword.arg == name), None)
        return self.operands[position] if named is None and position < len(self.operands) else named


def operation_of(call: ast.Call, scope: NameScope) -> Operation | None:
    """The call as an operation; None where it calls something else."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    path = scope.path(call.func)
    if path and path.startswith("triton.language."):
        name = path.removeprefix("triton.language.")
        for module in _MODULES:
            name = name.removeprefix(f"{module}.")
        first = [keyword.value for keyword in call.keywords if keyword.arg in _FIRST]
        return None if "." in name else Operation(call, name, tuple(call.args or first))
    if path is None and isinstance(call.func, ast.Attribute) and call.func.attr in METHODS:
        block = call.func.value
        is_local = not isinstance(block, ast.Name) or block.id in scope.bindings
        return Operation(call, call.func.attr, (block, *call.args)) if is_local else None
    return None


LOW_PRECISION = ("float16", "bfloat16")
FLOATS = (*LOW_PRECISION, "float32", "float64", "float")
"""`float` is one of unknown width."""
LITERAL = "literal"
"""The dtype of a number that takes on that of the block it meets."""
OPEN = "open"
"""Of a value that is made from itself, while its dtype is sought."""
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int1")


def agree(dtypes: list[str | None]) -> str | None:
    """The one dtype of values that are all held by one name."""
    known = {dtype for dtype in dtypes if dtype != OPEN}
    return known.pop() if len(known) == 1 else None if known else OPEN


def promote(one: str | None, other: str | None) -> str | None:
    """The dtype of a sum; None where it depends on which of the two is a scalar."""
    if one == other or other in (LITERAL, OPEN):
        return one
    if one in (LITERAL, OPEN):
        return other
    if one in FLOATS or other in FLOATS:
        return "float"
    return "int64" if "int64" in (one, other) and {one, other} <= {*INTEGERS} else None


def quotient_dtype(dtype: str | None) -> str | None:
    """The dtype of a quotient of this one: float16 and integers become float32."""
    if dtype == OPEN:
        return OPEN
    return "float32" if dtype in LOW_PRECISION or dtype in INTEGERS else dtype or "float"


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
