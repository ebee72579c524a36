"""What a kernel computes: calls of Triton's functions, equal values, numbers and terms."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from pytorch_to_triton.audit.call_arguments import only_adds_axes
from pytorch_to_triton.audit.flow import Definition, Flow, Stop, nowhere
from pytorch_to_triton.audit.operations import KEEPING, Operation, operation_of

_INFINITY = ("math.inf", "torch.inf", "numpy.inf")
_QUOTIENTS = ("fdiv", "div_rn")


@dataclass(frozen=True, eq=False)
class Values(Flow):
    """What the body of a kernel computes: its operations, equal values and terms."""

    _operations: dict[ast.Call, Operation | None] = field(default_factory=dict, init=False, repr=False)
    _keys: dict[ast.AST, int] = field(default_factory=dict, init=False, repr=False)
    _numbers: dict[tuple[object, ...], int] = field(default_factory=dict, init=False, repr=False)
    _ahead: set[ast.AST] = field(default_factory=set, init=False, repr=False)

    @cached_property
    def expressions(self) -> tuple[ast.expr, ...]:
        """All calls and arithmetic of the body; `x + y` for each `x += y` comes last."""
        return (
            *(node for node in self.nodes if isinstance(node, ast.BinOp | ast.Call)),
            *self._walk.augmented.values(),
        )

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """All calls of Triton's functions, in source order."""
        return tuple(operation for node in self.nodes if (operation := self.operation(node)))

    def calls(self, *names: str) -> Iterator[Operation]:
        """Its calls of these of Triton's functions, in source order."""
        return (operation for operation in self.operations if operation.name in names)

    def written(self, value: ast.expr) -> ast.expr:
        """Where a value stands in the source: y where `x + y` stands for `x += y`, t where `t[0]` is of t."""
        while value not in self.parents and isinstance(value, ast.BinOp | ast.Subscript):
            value = value.right if isinstance(value, ast.BinOp) else value.value
        return value

    def operation(self, node: ast.AST) -> Operation | None:
        """The call as an operation; None where it calls something else."""
        if not isinstance(node, ast.Call):
            return None
        if node not in self._operations:
            self._operations[node] = operation_of(node, self.scope)
        return self._operations[node]

    def is_a(self, node: ast.AST, *names: str) -> bool:
        """Whether it is a call of one of these functions."""
        operation = self.operation(node)
        return operation is not None and operation.name in names

    def range_end(self, node: ast.AST) -> ast.expr | None:
        """Where a tl.arange ends; None of anything else."""
        operation = self.operation(node)
        return operation.option(1, "end") if operation and operation.name == "arange" else None

    def range_ends(self, *values: ast.AST, stop: Stop = nowhere) -> Iterator[ast.expr]:
        """The ends of all tl.arange that the values are made from."""
        return (end for node in self.origins(*values, stop=stop) if (end := self.range_end(node)) is not None)

    def is_block(self, value: ast.AST) -> bool:
        """Whether it may be made from a tl.arange of this function: a block rather than a scalar."""
        return "arange" in self.made_by(value)

    def is_loaded(self, node: ast.AST) -> bool:
        """Whether it is a value from memory."""
        operation = self.operation(node)
        return operation is not None and (operation.name == "load" or operation.name.startswith("atomic_"))

    def direct_origins(self, *values: ast.AST) -> frozenset[ast.AST]:
        """The origins of the values, but not those of what was loaded."""
        return self.origins(*values, stop=self.is_loaded)

    def operand(self, node: ast.AST, *names: str) -> ast.expr | None:
        """The first operand where the value is a call of one of these functions; names are followed."""
        if not isinstance(node, ast.expr):
            return None
        operation = self.operation(self.bare(node))
        return operation.operands[0] if operation and operation.name in names and operation.operands else None

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
            case ast.Attribute() as node if self.scope.path(node) in _INFINITY:
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

    def calls_in(self, *values: ast.AST) -> Iterator[Operation]:
        """The operations among the origins of the values."""
        return (operation for node in self.origins(*values) if (operation := self.operation(node)))

    def made_by(self, *values: ast.AST) -> frozenset[str]:
        """The names of those operations."""
        return frozenset(operation.name for operation in self.calls_in(*values))

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
