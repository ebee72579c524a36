"""One call of the target with everything about its arguments fixed but the random numbers."""

from collections.abc import Iterable
from math import prod
from typing import Annotated, Literal

from pydantic import Field

from pytorch_to_triton.schema.case_group import Group
from pytorch_to_triton.schema.dtype import ITEM_BYTES, DType, Scalar
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire.packing import Packing

Layout = Literal["contiguous", "transposed", "expanded", "sliced", "offset", "large_stride"]
"""contiguous; transposed: the last two dimensions swapped in memory; expanded: the first
row seen again and again, stride 0; sliced: every second element of a
larger tensor along the last dimension; offset: contiguous, but starting one element into its storage;
large_stride: rows so far apart that the last one starts more than 2^31 elements into the storage."""
Fill = Literal[
    "random", "zeros", "ones", "equal_rows", "ties", "large", "huge", "small", "faint_rows", "negative",
    "positive", "negative_zero", "alternating", "shifted", "inf", "inf_ends", "inf_opposed",
    "minus_inf_row", "minus_inf_column", "plus_inf_row", "plus_inf_column", "nan", "nan_ends", "same_corners",
    "ends", "extremes", "outside",
]  # fmt: skip
"""random: signed, each row with a scale and an offset of its own. equal_rows: one random value a row. ties:
five distinct values at most, again and again (of integers: within their range). large/small: random times
1e4/1e-4 of the dtype's comfortable range. huge: random with every second row (of a single row, element)
so large that its squares overflow float16 and float8, and cubes the other dtypes. faint_rows: one row
after the other of subnormal numbers, of numbers whose squares are barely normal, and of small ones.
negative, positive: all below, or all above zero, and the larger the further along every dimension.
negative_zero: random with half of the elements -0.0. alternating: the sign changes from each element to
its neighbours along every dimension. shifted: random around a mean that is many times their spread. inf,
nan: random with some elements replaced by +inf and -inf, or by NaN. minus_inf_row, minus_inf_column:
random, but the first row (last dimension), or the first index of the last dimension, is -inf throughout;
plus_inf_row and plus_inf_column: +inf. nan_ends, inf_ends, inf_opposed: random but for the first and the
last element: NaN; +inf; +inf and -inf. same_corners: random but for the first, the middle and the last
element. ends: of floats in a range; one element in four is its low end or the largest number below its high
one. extremes: of integers; half of the elements are neighbours at the ends of the dtype, or past what 32 bits
or a float holds. outside: nothing but the value beside a range."""
LARGE_OFFSET = 2**31
"""Elements: an offset from here on is past what 32 bits with a sign can hold."""
_ROW_ALIGNMENT = 16
"""Elements: rows that lie far apart start at multiples of it."""


class TensorArgument(Value):
    """A tensor to be generated."""

    form: Literal["tensor"] = "tensor"
    name: str
    dtype: DType
    shape: tuple[int, ...]
    low: float | None = None
    """Smallest value, inclusive; None: the fill decides."""
    high: float | None = None
    """Largest value, exclusive."""
    outside: float | None = None
    """What one element in eight is instead, where the fill is random."""
    among: tuple[float, ...] = ()
    """Without a range: what one element in eight is instead, each in turn."""
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

    @property
    def span_bytes(self) -> int:
        """What the storage that its layout spans occupies, gaps included; with large strides at most."""
        return self._span() * ITEM_BYTES[self.dtype]

    def _span(self) -> int:
        """In elements, as worker/calls/generate.py lays them out."""
        if self.elements == 0:
            return 0
        if self.layout == "large_stride":
            return LARGE_OFFSET + _ROW_ALIGNMENT * max(self.shape, default=1) + self.elements
        if self.layout == "expanded" and len(self.shape) > 1:
            return self.elements // self.shape[0]
        return {"sliced": 2 * self.elements, "offset": self.elements + 1}.get(self.layout, self.elements)


class ConstantArgument(Value):
    """A scalar, None, bool, string or list of scalars, passed as it is."""

    form: Literal["constant"] = "constant"
    name: str
    value: Scalar | tuple[Scalar, ...]


class PackedArgument(Value):
    """A parameter that holds arguments before it, under the names that they have there."""

    form: Literal["packed"] = "packed"
    name: str
    packing: Packing


Argument = Annotated[TensorArgument | ConstantArgument | PackedArgument, Field(discriminator="form")]


def tensors_in(arguments: Iterable[Argument]) -> list[TensorArgument]:
    """The tensors of a call."""
    return [argument for argument in arguments if isinstance(argument, TensorArgument)]


class Case(Value):
    """One call: names unique within a validation, e.g. `M=7 N=64 x transposed`."""

    name: str
    """Sizes, then the label; `base` without both. The values are generated from it."""
    group: Group
    conditions: tuple[Group, ...] = ()
    """What is unusual about it: of a `combined` case several, of a declared one nothing."""
    dims: dict[str, int]
    arguments: tuple[Argument, ...]
    """In the order of the declaration; empty when the target makes them: `inputs(**dims)`, `get_inputs()`."""
    label: str = ""
    """What the name says after the sizes: how the call differs from random, contiguous tensors."""
    again_after: str | None = None
    """The case whose tensors, at the same addresses, are overwritten with this one's values before the
    candidate is called again; None: a call of its own."""
    configuration: int = 0
    """Which configuration an autotuned kernel takes, counted from the first one left after pruning, modulo
    their number. A case after another one finds its kernels tuned."""
    declared: bool = False
    """Of a `large_stride` case: the declared sizes of that tensor reach such offsets themselves."""

    @property
    def reasons(self) -> tuple[Group, ...]:
        """What is unusual about it, or its group."""
        return self.conditions or (self.group,)

    @property
    def dtypes(self) -> dict[str, str]:
        """Of its tensors, by name."""
        return {tensor.name: tensor.dtype for tensor in tensors_in(self.arguments)}

    @property
    def elements(self) -> int:
        """Over all its tensors, as far as they are generated from the declaration."""
        return sum(tensor.elements for tensor in tensors_in(self.arguments))
