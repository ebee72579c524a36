"""Triton's functions: calls under one name, and what they do to blocks and dtypes."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

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

_SHAPED = ("zeros", "full")
_RESHAPING = ("broadcast_to", "reshape", "view")
_MODULES = ("math", "random", "standard", "extra.libdevice", "extra.cuda.libdevice", "core")
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

    @property
    def shape(self) -> Sequence[ast.expr]:
        """The sizes that it spells out for a new block; empty where it does not."""
        if self.name in _RESHAPING and len(self.operands) > 2:
            return self.operands[1:]
        places = dict.fromkeys(_SHAPED, 0) | dict.fromkeys(_RESHAPING, 1)
        shape = self.option(places[self.name], "shape") if self.name in places else None
        return shape.elts if isinstance(shape, ast.Tuple | ast.List) else ()


def operation_of(call: ast.Call, scope: NameScope) -> Operation | None:
    """The call as an operation, `range(n)` like tl.range(n); None where it calls something else."""
    given = tuple(takewhile(lambda argument: not isinstance(argument, ast.Starred), call.args))
    path = scope.path(call.func)
    if path and path.startswith("triton.language."):
        name = path.removeprefix("triton.language.")
        for module in _MODULES:
            name = name.removeprefix(f"{module}.")
        first = tuple(keyword.value for keyword in call.keywords if keyword.arg in _FIRST)
        return None if "." in name else Operation(call, name, given or first)
    if isinstance(call.func, ast.Name) and call.func.id == "range" and not scope.holder("range"):
        return Operation(call, "range", given)
    if path is None and isinstance(call.func, ast.Attribute) and call.func.attr in METHODS:
        block = call.func.value
        is_local = not isinstance(block, ast.Name) or block.id in scope.bindings
        return Operation(call, call.func.attr, (block, *given)) if is_local else None
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
