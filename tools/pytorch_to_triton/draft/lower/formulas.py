"""Pointwise rows as formulas: a function of values, applied to operands that broadcast."""

from __future__ import annotations

from collections.abc import Callable

from pytorch_to_triton.draft.ir.functions import Kind
from pytorch_to_triton.draft.ir.values import Const, Value, const, kind_of, kind_of_dtype, op
from pytorch_to_triton.draft.ir.values import Operand as Term
from pytorch_to_triton.draft.lower.row import Context, Operand, as_kind, kind_of_result, number
from pytorch_to_triton.draft.lower.tensor import Tensor, broadcast

Formula = Callable[..., Term]


def mapped(ctx: Context, formula: Formula, *operands: Operand, dtype: str = "") -> Tensor:
    """The formula of operands in the kind of the result."""
    dtype = dtype or ctx.dtype
    return _applied(formula, operands, kind_of_dtype(dtype), dtype)


def compared(formula: Formula, *operands: Operand) -> Tensor:
    """The formula, which gives bools, of operands in the kind that they promote to."""
    values = [o.value if isinstance(o, Tensor) else number(o) for o in operands]
    return _applied(formula, operands, kind_of_result(*values), "bool")


def _applied(formula: Formula, operands: tuple[Operand, ...], kind: Kind, dtype: str) -> Tensor:
    dims, values = broadcast([o for o in operands if isinstance(o, Tensor)])
    given = iter(values)
    taken = [next(given) if isinstance(o, Tensor) else number(o) for o in operands]
    return Tensor(dims, const(formula(*(as_kind(v, kind) for v in taken))), dtype)


def where(condition: Value, x: Term, y: Term) -> Value:
    """x where the condition holds, else y."""
    return op("where", condition, x, y)


def scaled(x: Value, factor: Value) -> Value:
    """The product, where the factor is not the literal 1."""
    return x if is_literal(factor, 1) else op("mul", x, factor)


def is_literal(v: Value, wanted: float) -> bool:
    """Whether the value is this literal."""
    return isinstance(v, Const) and v.value == wanted


def is_whole(x: Tensor) -> bool:
    """Whether the tensor holds whole numbers or bools."""
    return kind_of(x.value) != "float"


def name_of(x: Tensor) -> str:
    """What a reader calls the tensor."""
    return getattr(x.value, "name", None) or "x"
