"""What values of a kernel certainly are: their dtypes, and whether they are blocks."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from pytorch_to_triton.audit.call_arguments import literal_integer, only_adds_axes
from pytorch_to_triton.audit.flow import Definition
from pytorch_to_triton.audit.operations import (
    ELEMENTWISE,
    FLOATING,
    FLOATS,
    INTEGERS,
    KEEPING_DTYPE,
    LITERAL,
    LOW_PRECISION,
    OPEN,
    SCALAR,
    Operation,
    agree,
    promote,
    quotient_dtype,
)
from pytorch_to_triton.audit.values import Values

_STATIC = ast.Is | ast.IsNot | ast.In | ast.NotIn


class Kind(IntEnum):
    """What is certain of a value; each says more than the one before."""

    UNKNOWN = 0
    """It may be known when the kernel is compiled, too."""
    RUNTIME = 1
    """A scalar or a block that only a run knows."""
    BLOCK = 2
    """A block of more than one element."""


@dataclass(frozen=True, eq=False)
class TypedValues(Values):
    """The dtypes and kinds of a kernel's values."""

    _dtypes: dict[ast.AST, str | None] = field(default_factory=dict, init=False, repr=False)
    _kinds: dict[ast.AST, Kind] = field(default_factory=dict, init=False, repr=False)

    def has_scalar(self, parameter: str) -> bool:
        """Whether a parameter certainly is a number or a pointer, and no block."""
        raise NotImplementedError

    def dtype(self, value: ast.AST) -> str | None:
        """The dtype that a value certainly has: `float16`, or `float` of unknown width; None: unknown."""
        dtype = self._dtype_in_loops(value)
        return dtype if dtype in FLOATS or dtype in INTEGERS else None

    def _dtype_in_loops(self, value: ast.AST) -> str | None:
        if value not in self._dtypes:
            # What a loop carries keeps its dtype, so that its own update may be left out.
            self._dtypes[value] = OPEN
            self._dtypes[value] = self._compute_dtype(value)
        return self._dtypes[value]

    def _compute_dtype(self, value: ast.AST) -> str | None:
        match value:
            case ast.Constant(value=bool()) | ast.Compare() | ast.BoolOp():
                return "int1"
            case ast.Constant(value=int() | float()):
                return LITERAL
            case ast.arg(arg=name):
                return LITERAL if self.has_scalar(name) else None
            case ast.Name() if held := self.definitions(value):
                start = [definition for definition in held if not self._keeps_dtype(definition)]
                return agree([self._dtype_in_loops(one) for one in start or held])
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self._dtype_in_loops(operand)
            case ast.BinOp(left=left, op=op, right=right):
                dtype = promote(self._dtype_in_loops(left), self._dtype_in_loops(right))
                return quotient_dtype(dtype) if isinstance(op, ast.Div) else dtype
            case ast.IfExp(body=body, orelse=orelse):
                return agree([self._dtype_in_loops(body), self._dtype_in_loops(orelse)])
            case ast.Subscript(value=block, slice=index) if only_adds_axes(index):
                return self._dtype_in_loops(block)
            case ast.Attribute(value=block, attr="T"):
                return self._dtype_in_loops(block)
            case ast.Call() if call := self.operation(value):
                return self._dtype_of_call(call)
        return None

    def _keeps_dtype(self, definition: Definition) -> bool:
        """Whether it updates the name that it is made from, of which a loop must not change the dtype.

        tl.static_range is unrolled, and may change it.
        """
        if not isinstance(definition, ast.expr):
            return False
        used = (node for node in ast.walk(definition) if isinstance(node, ast.Name))
        if not any(definition in self.definitions(name) for name in used):
            return False
        loops = self.loops(self.written(definition))
        return not any(isinstance(loop, ast.For) and self.is_a(loop.iter, "static_range") for loop in loops)

    def _dtype_of_call(self, call: Operation) -> str | None:
        first = call.operands[0] if call.operands else None
        match call.name:
            case "to" | "cast":
                return self._named_dtype(call.option(1, "dtype"))
            case "zeros":
                return self._named_dtype(call.option(1, "dtype"))
            case "full":
                return self._named_dtype(call.option(2, "dtype"))
            case "sum" if dtype := call.option(3, "dtype"):
                return self._named_dtype(dtype)
            case "arange" | "program_id" | "num_programs" | "cdiv" | "range" | "static_range":
                return "int32"
            case "where" if len(call.operands) == 3:
                return promote(*(self._dtype_in_loops(operand) for operand in call.operands[1:]))
            case "dot" if call.option(2, "acc"):
                return self._dtype_in_loops(call.operands[2]) if len(call.operands) > 2 else None
            case "maximum" | "minimum" if len(call.operands) == 2:
                return promote(*(self._dtype_in_loops(operand) for operand in call.operands))
            case "fdiv" | "div_rn" if len(call.operands) == 2:
                return quotient_dtype(promote(*(self._dtype_in_loops(operand) for operand in call.operands)))
            case name if first is not None and name in FLOATING:
                dtype_of_first = self._dtype_in_loops(first)
                return dtype_of_first if dtype_of_first in FLOATS else "float"
            case "max" | "min" if first is not None and self._dtype_in_loops(first) in LOW_PRECISION:
                return "float32"
            case name if first is not None and name in KEEPING_DTYPE:
                return self._dtype_in_loops(first)
        return None

    def _named_dtype(self, node: ast.expr | None) -> str | None:
        """The dtype that `tl.float16` or `x.dtype` names."""
        if node is None:
            return None
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            return self._dtype_in_loops(node.value)
        name = (self.scope.path(node) or "").removeprefix("triton.language.")
        return name if name in FLOATS or name in INTEGERS else None

    def kind(self, value: ast.AST) -> Kind:
        """What an expression certainly is; a name is the least that it may hold."""
        if value not in self._kinds:
            # What a loop carries does not decide by itself what it is.
            self._kinds[value] = Kind.BLOCK
            self._kinds[value] = self._compute_kind(value)
        return self._kinds[value]

    def runs_for_sure(self, node: ast.AST) -> bool:
        """Whether the compiler certainly meets a node: no condition around it is decided when compiling."""
        return all(self.kind(test) > Kind.UNKNOWN for test in self.conditions(node))

    def _compute_kind(self, value: ast.AST) -> Kind:
        match value:
            case ast.Name():
                return min(map(self.kind, self.definitions(value)), default=Kind.UNKNOWN)
            case ast.BinOp(left=left, right=right):
                return self._most((left, right))
            case ast.Compare(left=left, ops=ops, comparators=others):
                is_static = any(isinstance(op, _STATIC) for op in ops)
                return Kind.UNKNOWN if is_static else self._most((left, *others))
            case ast.UnaryOp(operand=operand) | ast.NamedExpr(value=operand):
                return self.kind(operand)
            case ast.BoolOp(values=parts):
                return min(map(self.kind, parts))
            case ast.IfExp(body=body, orelse=orelse):
                return min(self.kind(body), self.kind(orelse))
            case ast.Subscript(value=inner, slice=index) if only_adds_axes(index):
                return self.kind(inner)
            case ast.Call() if operation := self.operation(value):
                return self._kind_of_call(operation)
        return Kind.UNKNOWN

    def _kind_of_call(self, operation: Operation) -> Kind:
        match operation:
            case Operation(name="load", operands=operands):
                return max(Kind.RUNTIME, self._most(operands[:1]))
            case Operation(name="arange", operands=[first, last]):
                start, end = literal_integer(first), literal_integer(last)
                is_one = start is not None and end is not None and end - start == 1
                return Kind.UNKNOWN if is_one else Kind.BLOCK
            case Operation(name="zeros" | "full"):
                is_one = all(literal_integer(size) == 1 for size in operation.shape)
                return Kind.UNKNOWN if is_one else Kind.BLOCK
            case Operation(name="dot"):
                return Kind.BLOCK
            case Operation(name="to", operands=[block, *_]):
                return self.kind(block)
        if operation.name in SCALAR:
            return Kind.RUNTIME
        return self._most(operation.operands) if operation.name in ELEMENTWISE else Kind.UNKNOWN

    def _most(self, values: Iterable[ast.expr]) -> Kind:
        return max(map(self.kind, values), default=Kind.UNKNOWN)
