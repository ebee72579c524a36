"""What a kernel computes: which assignment a name holds where it stands, equal values, dtypes and terms."""

import ast
from collections.abc import Iterable
from functools import cached_property, lru_cache

from pytorch_to_triton.audit.analysis.operations import (
    FLOATING,
    FLOATS,
    INTEGERS,
    KEEPING,
    KEEPING_DTYPE,
    LITERAL,
    LOW_PRECISION,
    OPEN,
    Operation,
    agree,
    operation_of,
    promote,
    quotient_dtype,
)
from pytorch_to_triton.audit.call_arguments import only_adds_axes
from pytorch_to_triton.audit.flow import Definition, Definitions, reachable
from pytorch_to_triton.audit.source import SourceKernel
from pytorch_to_triton.triton_api.name_scope import parameters_of

_INFINITY = ("math.inf", "torch.inf", "numpy.inf")
_QUOTIENTS = ("fdiv", "div_rn")


@lru_cache(maxsize=256)
def values(kernel: SourceKernel) -> "KernelValues":
    """The values of a kernel, which several rules ask for."""
    return KernelValues(kernel)


class KernelValues:
    """The values of one kernel."""

    def __init__(self, kernel: SourceKernel) -> None:
        self.kernel = kernel
        self._definitions = Definitions(kernel.node.body, parameters_of(kernel.node))
        self._dtypes: dict[ast.AST, str | None] = {}
        self._operations: dict[ast.Call, Operation | None] = {}
        self._keys: dict[ast.AST, int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._ahead: set[ast.AST] = set()

    @cached_property
    def expressions(self) -> tuple[ast.expr, ...]:
        """All calls and arithmetic of the body; `x + y` for each `x += y` comes last."""
        return (
            *(node for node in self.kernel.nodes if isinstance(node, ast.BinOp | ast.Call)),
            *self._augmented,
        )

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All calls of Triton's functions, in source order."""
        return tuple(operation for node in self.kernel.nodes if (operation := self.operation(node)))

    def written(self, value: ast.expr) -> ast.expr:
        """Where a value stands in the source: y where `x + y` stands for `x += y`."""
        return value.right if isinstance(value, ast.BinOp) and value in self._augmented else value

    def definitions(self, name: ast.Name) -> tuple[Definition, ...]:
        """What the name may hold where it stands; empty where nothing in the kernel says."""
        return self._definitions.reached.get(name, ())

    @cached_property
    def _augmented(self) -> tuple[ast.BinOp, ...]:
        return tuple(self._definitions.augmented.values())

    def operation(self, node: ast.AST) -> Operation | None:
        """The call as an operation; None where it calls something else."""
        if not isinstance(node, ast.Call):
            return None
        if node not in self._operations:
            self._operations[node] = operation_of(node, self.kernel.scope)
        return self._operations[node]

    def is_a(self, node: ast.AST, *names: str) -> bool:
        """Whether it is a call of one of these functions."""
        operation = self.operation(node)
        return operation is not None and operation.name in names

    def operand(self, node: ast.AST, *names: str) -> ast.expr | None:
        """The first operand where the value is a call of one of these functions; names are followed."""
        if not isinstance(node, ast.expr):
            return None
        operation = self.operation(self.bare(node))
        return operation.operands[0] if operation and operation.name in names and operation.operands else None

    def resolved(self, value: ast.expr) -> ast.expr:
        """The expression that a name certainly stands for; else the value itself."""
        seen: set[ast.AST] = set()
        while isinstance(value, ast.Name) and value not in seen:
            seen.add(value)
            match self.definitions(value):
                case (ast.expr() as only,):
                    value = only
                case _:
                    break
        return value

    def bare(self, value: ast.expr) -> ast.expr:
        """The value without names, casts, reshapes and new axes."""
        for _ in range(50):
            value = self.resolved(value)
            operation = self.operation(value)
            if operation and operation.name in KEEPING and operation.operands:
                value = operation.operands[0]
            elif isinstance(value, ast.Subscript) and only_adds_axes(value.slice):
                value = value.value
            else:
                break
        return value

    def same(self, one: ast.expr, other: ast.expr) -> bool:
        """Whether the two are certainly equal, but for casts."""
        return self.key(one) == self.key(other)

    def number(self, value: ast.expr) -> float | None:
        """What a literal, or a name for one, comes to."""
        match self.bare(value):
            case ast.Constant(value=bool()):
                return None
            case ast.Constant(value=int(number) | float(number)):
                return float(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                negated = self.number(operand)
                return None if negated is None else -negated
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf" | "-inf" as text)]):
                return float(text)
            case ast.Attribute() as node if self.kernel.scope.path(node) in _INFINITY:
                return float("inf")
        return None

    def quotient(self, value: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Dividend and divisor."""
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
            return value.left, value.right
        operation = self.operation(value)
        if operation and operation.name in _QUOTIENTS and len(operation.operands) == 2:
            return operation.operands[0], operation.operands[1]
        return None

    def squared(self, value: ast.AST) -> ast.expr | None:
        """x for x * x and x ** 2; names are followed."""
        match self.bare(value) if isinstance(value, ast.expr) else value:
            case ast.BinOp(left=left, op=ast.Mult(), right=right) if self.same(left, right):
                return left
            case ast.BinOp(left=left, op=ast.Pow(), right=right) if self.number(right) == 2:
                return left
        return None

    def terms(self, value: ast.expr) -> frozenset[ast.AST]:
        """What is added up to the value: of sums, differences, tl.sum and what loops accumulate.

        Each is bare, and every assignment that may reach a name counts.
        """
        terms: set[ast.AST] = set()
        ahead: list[Definition] = [value]
        seen: set[ast.AST] = set()
        while ahead:
            node = ahead.pop()
            if isinstance(node, ast.expr):
                node = self.bare(node)
            if node in seen:
                continue
            seen.add(node)
            match node:
                case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                    ahead += [left, right]
                case ast.Name() if held := self.definitions(node):
                    ahead += held
                case ast.Call() if (
                    (summed := self.operation(node)) and summed.name == "sum" and summed.operands
                ):
                    ahead.append(summed.operands[0])
                case _:
                    terms.add(node)
        return frozenset(terms)

    def origins(self, *nodes: ast.AST) -> frozenset[ast.AST]:
        """All nodes that the values may be made from, themselves included, and parameters (ast.arg)."""
        return reachable(nodes, self._sources)

    def _sources(self, node: ast.AST) -> Iterable[ast.AST]:
        parts = ast.iter_child_nodes(node)
        return (*parts, *self.definitions(node)) if isinstance(node, ast.Name) else parts

    def made_by(self, *nodes: ast.AST) -> frozenset[str]:
        """The names of the operations among the origins of the values."""
        return frozenset(
            operation.name for node in self.origins(*nodes) if (operation := self.operation(node))
        )

    @cached_property
    def selected(self) -> frozenset[ast.AST]:
        """All that tl.where chooses from: what may be replaced where it is not wanted."""
        choices = [
            operand for call in self.operations if call.name == "where" for operand in call.operands[1:]
        ]
        return self.origins(*choices)

    def key(self, value: ast.AST) -> int:
        """A number that two values share only where they are computed alike."""
        if value in self._keys:
            return self._keys[value]
        if value in self._ahead:
            return self._intern("loop", id(value))
        self._ahead.add(value)
        self._keys[value] = number = self._intern(*self._shape(value))
        self._ahead.discard(value)
        return number

    def _shape(self, value: ast.AST) -> Iterable[object]:
        match value:
            case ast.Name(id=name):
                held = self.definitions(value)
                if len(held) == 1 and isinstance(held[0], ast.expr):
                    return ("same", self.key(held[0]))
                return ("name", name, *sorted(map(id, held)))
            case ast.Constant(value=constant):
                return ("constant", repr(float(constant)) if type(constant) is int else repr(constant))
            case ast.Call() if (
                (operation := self.operation(value))
                and operation.name in ("to", "cast")
                and operation.operands
            ):
                return ("same", self.key(operation.operands[0]))
            case ast.Call() if operation := self.operation(value):
                named = ((keyword.arg, self.key(keyword.value)) for keyword in value.keywords)
                return (operation.name, *map(self.key, operation.operands), *named)
            case ast.Attribute(attr=attribute, value=owner):
                return ("attribute", attribute, self.key(owner))
        return (type(value).__name__, *map(self.key, ast.iter_child_nodes(value)))

    def _intern(self, kind: object, *rest: object) -> int:
        if kind == "same":
            (number,) = rest
            assert isinstance(number, int)
            return number
        return self._numbers.setdefault((kind, *rest), len(self._numbers))

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
                is_scalar = name in self.kernel.constexprs or self.kernel.is_launched
                return LITERAL if is_scalar else None
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
            case ast.Call(func=ast.Name(id="range")):
                return "int32"
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
        loops = self.kernel.flow.loops(self.written(definition))
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
        name = (self.kernel.scope.path(node) or "").removeprefix("triton.language.")
        return name if name in FLOATS or name in INTEGERS else None
