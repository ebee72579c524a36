"""What a lowering row is: a function with its operator's own arguments, which gives values.

    @row("aten.lerp.Scalar")
    def lerp(ctx, input, end, weight):
        return ctx.pointwise("add", input, ctx.pointwise("mul", weight, ctx.pointwise("sub", end, input)))

or, where it is a formula of values, an entry of a table that `register_formulas` takes.

Arguments have the names of torch's schema. A row takes all of them, or names them all and takes those that it
reads: a test holds every row against the installed torch. A tensor comes as a Tensor, a number as a number, a
size that depends on the inputs as a sympy expression, a number computed from sizes or an argument of the
function's own as an Argument. What a row cannot do it refuses by raising Refused: PyTorch is left the call.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from typing import Any, TypeVar

import sympy

from pytorch_to_triton.draft import lower
from pytorch_to_triton.draft.ir.functions import Kind
from pytorch_to_triton.draft.ir.indices import extent
from pytorch_to_triton.draft.ir.rewriting import decided, rewrite, substitute
from pytorch_to_triton.draft.ir.sizes import Size, product
from pytorch_to_triton.draft.ir.values import (
    Const,
    Extent,
    Index,
    Load,
    Monoid,
    Number,
    Reduce,
    Value,
    const,
    kind_of,
    kind_of_dtype,
    op,
)
from pytorch_to_triton.draft.ir.values import Operand as Term
from pytorch_to_triton.draft.lower.tensor import Dim, Names, Tensor, broadcast

Operand = Tensor | Value | Number | Size
Lowered = Tensor | tuple[Tensor, ...]
RowFunction = Callable[..., Lowered]
F = TypeVar("F", bound=RowFunction)

WIDTHS: Mapping[str, str] = {
    "float64": "to_double", "float32": "to_float", "float16": "to_half", "bfloat16": "to_bfloat16",
    "int64": "to_int64", "int32": "to_int32", "int16": "to_int16", "int8": "to_int8", "uint8": "to_uint8",
    "bool": "to_bool", "float8_e4m3fn": "to_float8",
}  # fmt: skip
"""The function that casts to a dtype. Floats are computed in float32 (float64 in a float64 function)."""
WRAPPED: Mapping[str, str] = {"uint8": "to_int64", "int8": "to_int32", "int16": "to_int32"}
"""By way of what PyTorch casts floats to short integers: -12.0 is 244 in uint8, and infinity is no number."""


class Refused(Exception):
    """A call that its row cannot express; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Row:
    """How one operator is lowered."""

    op: str
    function: RowFunction
    arguments: tuple[str, ...]
    """The operator's, in order."""

    def lowered(self, ctx: Context, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Lowered:
        """The call's result. Raises Refused."""
        given = {**dict(zip(self.arguments, args, strict=False)), **kwargs}
        read = parameters_of(self.function)
        return self.function(ctx, **{name: value for name, value in given.items() if name in read})


ROWS: dict[str, Row] = {}


def row(*operators: str, arguments: str = "") -> Callable[[F], F]:
    """Registers a function as the row of operators such as `aten.add.Tensor`.

    `arguments` are those of the operators where the function does not read them all: some show in what
    torch.export says of the result, and others are no kernel's question.
    """

    def registered(function: F) -> F:
        for name in operators:
            assert name not in ROWS, f"{name} has two rows"
            ROWS[name] = Row(name, function, tuple(arguments.split()) or parameters_of(function))
        return function

    return registered


def first_of(function: Callable[..., tuple[Tensor, ...]]) -> RowFunction:
    """The row of an operator that gives the first of another's results alone, computed at once."""

    @wraps(function)
    def first(ctx: Context, *given: Any, **named: Any) -> Tensor:
        return function(replace(ctx, stored=inside), *given, **named)[0]

    return first


@cache
def parameters_of(function: RowFunction) -> tuple[str, ...]:
    """What it takes after its context."""
    return tuple(inspect.signature(function).parameters)[1:]


def load_rows() -> Mapping[str, Row]:
    """All rows, from every file of this folder."""
    for module in pkgutil.iter_modules(lower.__path__):
        importlib.import_module(f"{lower.__name__}.{module.name}")
    return ROWS


def inside(name: str, tensor: Tensor) -> Tensor:
    """The value itself: a part of what reads it."""
    return tensor


def unseeded() -> Value:
    """Where nothing is drawn."""
    raise Refused("no seed is drawn here")


Limit = tuple[Size, int]
"""A size, and how large it may be."""


def always_within(*limits: Limit) -> bool:
    """Whether one of the sizes is no larger than it may be, whatever the dims are."""
    return any(size.is_Integer and size <= most for size, most in limits)


@dataclass(frozen=True)
class Context:
    """One call: what torch.export says about its result, and fresh axes."""

    names: Names
    shape: tuple[Size, ...]
    """Of the result; () where it has several."""
    dtype: str
    """Of the result; "" where it has several."""
    name: str
    """What the result will be called."""
    stored: Callable[[str, Tensor], Tensor] = inside
    """Makes a value a step of its own, under a name: what reads it may be another kernel's."""
    seed: Callable[[], Value] = unseeded
    """Makes a step that draws a seed by torch's generator; int64."""
    made: Mapping[str, Tensor] = field(default_factory=dict)
    """The steps that read nothing."""
    is_within: Callable[..., bool] = always_within
    """Whether one of these Limits holds at all sizes at hand; `run` refuses others from then on."""

    def seen_through(self, value: Value) -> Value:
        """The value, with what a step that reads nothing holds in place of its elements."""

        def element(v: Value) -> Value | None:
            if isinstance(v, Load) and v.where is None and v.buffer.name in self.made:
                return self.made[v.buffer.name].at(*v.index)
            return None

        return rewrite(rewrite(value, element), decided)

    def axis(self, hint: str, size: Size) -> Any:
        """A new axis; `hint` is its name if no other has it."""
        return self.names.axis(hint, size)

    def dim(self, hint: str, size: Size) -> Dim:
        """A new dimension: an axis, or none for a size of 1."""
        return self.names.dim(hint, size)

    def apart(self, x: Tensor, taken: Sequence[Dim]) -> Tensor:
        """The tensor, with axes of its own in place of those that `taken` has: both may be of one operand."""
        others = {a for d in taken for a in d}
        fresh = {a: self.axis(a.name, a.size) for a in x.axes if a in others}
        if not fresh:
            return x
        dims = tuple(tuple(fresh.get(a, a) for a in d) for d in x.dims)
        return replace(x, dims=dims, value=substitute(x.value, {a: Index(b) for a, b in fresh.items()}))

    def tensor(self, dims: Sequence[Dim], value: Value, dtype: str = "") -> Tensor:
        """A result, in this dtype or the call's own."""
        return Tensor(tuple(dims), value, dtype or self.dtype)

    def pointwise(self, fn: str, *operands: Operand, dtype: str = "", name: str | None = None) -> Tensor:
        """A row of FUNCTIONS of operands in the kind of the result."""
        return mapped(self, lambda *values: op(fn, *values, name=name), *operands, dtype=dtype)

    def where(self, condition: Operand, x: Operand, y: Operand) -> Tensor:
        """torch.where, whose branches get the result's kind."""
        dims, (c, a, b) = _aligned((condition, x, y))
        kind = "float" if kind_of_dtype(self.dtype) == "float" else kind_of_result(a, b)
        return Tensor(dims, where(as_kind(c, "bool"), as_kind(a, kind), as_kind(b, kind)), self.dtype)

    def reduce(
        self,
        monoid: Monoid,
        x: Tensor | Sequence[Tensor],
        dims: Sequence[int],
        keepdim: bool = False,
        *,
        dtype: str = "",
        name: str | None = None,
    ) -> Tensor:
        """A plain monoid over dimensions."""
        first = x if isinstance(x, Tensor) else x[0]
        args = (x.value,) if isinstance(x, Tensor) else tuple(t.value for t in x)
        over = {d % len(first) for d in dims} if len(first) else set()
        axes = tuple(a for i, d in enumerate(first.dims) for a in d if i in over)
        kept = tuple(() if i in over else d for i, d in enumerate(first.dims) if keepdim or i not in over)
        value = Reduce(monoid, args, axes, name=name) if axes else args[0]
        return Tensor(kept, value, dtype or self.dtype)


def count(x: Tensor, dims: Sequence[int]) -> Size:
    """How many elements lie along dimensions."""
    return product(x.shape[d] for d in sorted({d % len(x) for d in dims} if len(x) else ()))


def all_dims(x: Tensor, dims: Sequence[int] | int | None) -> tuple[int, ...]:
    """Dimensions counted from the front; None or none given means all."""
    if isinstance(dims, int):
        dims = (dims,)
    if not dims:
        return tuple(range(len(x)))
    return tuple(sorted(d % max(len(x), 1) for d in dims)) if len(x) else ()


def number(x: Operand) -> Value:
    """A number, size or value as a value."""
    if isinstance(x, Value):
        return x
    if isinstance(x, sympy.Expr):
        return extent(x)
    assert not isinstance(x, Tensor)
    return Const(x)


def kind_of_result(*values: Value) -> Kind:
    """What values of several kinds promote to."""
    kinds = {kind_of(v) for v in values}
    order: tuple[Kind, ...] = ("float", "int", "bool")
    return next(k for k in order if k in kinds)


def as_kind(v: Value, kind: Kind) -> Value:
    """The value in that kind; literals are simply written so."""
    if kind_of(v) == kind or (isinstance(v, Extent) and kind == "float"):
        return v
    if isinstance(v, Const) and kind != "bool":
        return Const(float(v.value) if kind == "float" else int(v.value))
    return op({"float": "to_float", "int": "to_int64", "bool": "to_bool"}[kind], v)


def cast(x: Tensor, dtype: str) -> Tensor:
    """The tensor in another dtype, as `x.to(dtype)`."""
    if dtype == x.dtype:
        return x
    if dtype == "float32" and x.kind == "float":
        return replace(x, dtype=dtype)
    if dtype == "bool" and x.kind == "bool":
        return replace(x, dtype=dtype)
    value = x.value
    if x.kind == "float" and dtype in WRAPPED:
        value = op(WRAPPED[dtype], value)
    if dtype == "float8_e4m3fn":
        value = as_kind(value, "float")
    return replace(x, value=op(WIDTHS[dtype], value), dtype=dtype)


Formula = Callable[..., Term]


def mapped(ctx: Context, formula: Formula, *operands: Operand, dtype: str = "") -> Tensor:
    """The formula of operands in the kind of the result."""
    dtype = dtype or ctx.dtype
    return _applied(formula, operands, kind_of_dtype(dtype), dtype)


def compared(ctx: Context, formula: Formula, *operands: Operand) -> Tensor:
    """The formula, which gives bools, of operands in the kind that they promote to."""
    values = [o.value if isinstance(o, Tensor) else number(o) for o in operands]
    return _applied(formula, operands, kind_of_result(*values), "bool")


def _applied(formula: Formula, operands: tuple[Operand, ...], kind: Kind, dtype: str) -> Tensor:
    dims, values = _aligned(operands)
    return Tensor(dims, const(formula(*(as_kind(v, kind) for v in values))), dtype)


def _aligned(operands: Sequence[Operand]) -> tuple[tuple[Dim, ...], list[Value]]:
    """What operands broadcast to, and their values over these dimensions."""
    dims, values = broadcast([o for o in operands if isinstance(o, Tensor)])
    given = iter(values)
    return dims, [next(given) if isinstance(o, Tensor) else number(o) for o in operands]


def register_formulas(formulas: Mapping[str, Formula], applied: Callable[..., Tensor] = mapped) -> None:
    """Registers formulas as rows of operators such as `add.Tensor add.Scalar`.

    The operators' arguments are a formula's parameters; it is `applied` to them by `mapped` or `compared`.
    """
    for operators, formula in formulas.items():
        _register(operators, formula, applied)


def _register(operators: str, formula: Formula, applied: Callable[..., Tensor]) -> None:
    taken = inspect.signature(formula)

    def lowered(ctx: Context, **given: Operand) -> Tensor:
        bound = taken.bind(**given)
        bound.apply_defaults()
        return applied(ctx, formula, *bound.args)

    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    lowered.__signature__ = taken.replace(parameters=[context, *taken.parameters.values()])  # type: ignore[attr-defined]
    row(*(f"aten.{name}" for name in operators.split()))(lowered)


def where(condition: Value, x: Term, y: Term) -> Value:
    """x where the condition holds, else y."""
    return op("where", condition, x, y)


def scaled(x: Value, factor: Value) -> Value:
    """The product, where the factor is not the literal 1."""
    return x if is_literal(factor, 1) else x * factor


def is_literal(v: Value, wanted: float) -> bool:
    """Whether the value is this literal."""
    return isinstance(v, Const) and v.value == wanted


def is_whole(x: Tensor) -> bool:
    """Whether the tensor holds whole numbers or bools."""
    return kind_of(x.value) != "float"


def name_of(x: Tensor) -> str:
    """What a reader calls the tensor."""
    return getattr(x.value, "name", None) or "x"
