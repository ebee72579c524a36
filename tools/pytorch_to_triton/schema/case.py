"""One call of the target with everything about its arguments settled but the random numbers."""

from collections.abc import Iterable
from math import prod
from typing import Annotated, Literal

from pydantic import Field

from pytorch_to_triton.schema.value import Value

DType = Literal[
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool",
]  # fmt: skip
ITEM_BYTES: dict[DType, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
Layout = Literal["contiguous", "transposed", "expanded", "sliced", "offset"]
"""contiguous; transposed: the last two dimensions swapped in memory; expanded: the first
row seen again and again, stride 0; sliced: every second element of a
larger tensor along the last dimension; offset: contiguous, but starting one element into its storage."""
Fill = Literal["random", "zeros", "ones", "equal_rows", "large", "small", "negative", "inf", "nan"]
"""random: signed, each row with a scale and an offset of its own. equal_rows: one random value a row.
large/small: random times 1e4/1e-4 of the dtype's comfortable range. negative: all below zero. inf, nan:
random with some elements replaced by +inf and -inf, or by NaN."""
Scalar = bool | int | float | str | None


class TensorArgument(Value):
    """A tensor to be drawn."""

    form: Literal["tensor"] = "tensor"
    name: str
    dtype: DType
    shape: tuple[int, ...]
    low: float | None = None
    """Smallest value, inclusive; None: the fill decides."""
    high: float | None = None
    """Largest value, exclusive."""
    fill: Fill = "random"
    layout: Layout = "contiguous"

    @property
    def elements(self) -> int:
        """How many elements it holds."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """What its elements occupy, gaps of the layout left out."""
        return self.elements * ITEM_BYTES[self.dtype]


class ListArgument(Value):
    """A list of tensors to be drawn; each item's name is `name[i]`."""

    form: Literal["list"] = "list"
    name: str
    items: tuple[TensorArgument, ...]


class ConstantArgument(Value):
    """A scalar, None, bool, string or list of scalars, passed as it is."""

    form: Literal["constant"] = "constant"
    name: str
    value: Scalar | tuple[Scalar, ...]


Argument = Annotated[TensorArgument | ListArgument | ConstantArgument, Field(discriminator="form")]


def tensors_in(arguments: Iterable[Argument]) -> list[TensorArgument]:
    """The tensors of a call, the items of lists included."""
    items = ((a,) if isinstance(a, TensorArgument) else a.items for a in arguments if a.form != "constant")
    return [tensor for group in items for tensor in group]


Group = Literal["declared", "reduced", "odd", "one", "empty", "layout", "special", "dtype"]
"""Why a case is there: sizes the caller declared; sizes below those, where the declared ones are over the
limit; odd, one-element and empty sizes; memory layouts; special values; further dtypes that are claimed."""


class Case(Value):
    """One call: names unique within a validation, e.g. `M=7 N=64 float32 transposed(x)`."""

    name: str
    group: Group
    dims: dict[str, int]
    arguments: tuple[Argument, ...]
    """In the order of the declaration; empty when the target draws them: `inputs(**dims)`, `get_inputs()`."""
