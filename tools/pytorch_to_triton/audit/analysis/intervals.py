"""Which integers a declared tensor may hold, and the results of computing with them."""

import ast
from dataclasses import dataclass
from itertools import product

from pytorch_to_triton.audit.analysis.launch_sizes import declaration_of
from pytorch_to_triton.audit.analysis.launched_tensors import owner_of
from pytorch_to_triton.audit.analysis.pointer_dtypes import dtypes_of
from pytorch_to_triton.audit.source import SourceKernel
from pytorch_to_triton.inputs.input_spec import INTEGERS, TensorSpec, default_range


@dataclass(frozen=True)
class Interval:
    """Integers of a dtype from low to high, both included."""

    dtype: str
    low: int
    high: int

    @property
    def fits(self) -> bool:
        """Whether the dtype holds them all."""
        least, end = next(bounds for name, bounds in INTEGERS.items() if name == self.dtype)
        return least <= self.low and self.high < end


def held_by(pointer: str, kernel: SourceKernel) -> Interval | None:
    """What a declared input may hold that launches pass for a pointer; None where nothing is declared."""
    dtypes = dtypes_of(pointer, kernel)
    declaration = declaration_of(kernel.file)
    names = {_owner(value) for launch in kernel.launches if (value := launch.given(kernel).get(pointer))}
    spec = declaration.inputs.get(next(iter(names)) or "") if declaration and len(names) == 1 else None
    if len(dtypes) != 1 or not isinstance(spec, TensorSpec):
        return None
    dtype = next((name for name in INTEGERS if {name} == dtypes), None)
    if dtype is None:
        return None
    least, end = default_range(dtype)
    low, high = _number(spec.low, least), _number(spec.high, end)
    return None if low is None or high is None else Interval(dtype, low, high - 1)


def result(op: ast.operator, one: Interval, other: Interval) -> Interval:
    """What a sum, a difference or a product comes to where nothing wraps around."""
    pairs = [*product((one.low, one.high), (other.low, other.high))]
    match op:
        case ast.Add():
            made = [first + second for first, second in pairs]
        case ast.Sub():
            made = [first - second for first, second in pairs]
        case _:
            made = [first * second for first, second in pairs]
    return Interval(one.dtype, min(made), max(made))


def _owner(value: ast.expr) -> str | None:
    """x of x and `x.contiguous()`."""
    owner = owner_of(value)
    return owner.id if isinstance(owner, ast.Name) else None


def _number(bound: str | None, default: int | None) -> int | None:
    """A bound that is a literal; None of one that depends on sizes."""
    if bound is None:
        return default
    try:
        return int(bound)
    except ValueError:
        return None
