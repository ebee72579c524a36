"""One declared input: a tensor, a size, a constant or what holds several of them, and its grammar.

    float32[M, N]    float32|bfloat16[M, N // 2]    int64[M] in 0..N    float32[M] in 0.1..1.0    float32[]
    1|4|8    30.0|0.0    silu|gelu|None    torch.float32|torch.bfloat16

A string is a tensor when it has a square bracket or starts with a dtype. One that names dimensions and
nothing else is a whole number, that size (`G`, `N // 2`); what has `|` between is the values that a constant
has. Any other string is a constant (`tanh`). Quotes inside the string make it a constant whatever it holds
(`"'float32'"`).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import Annotated, Literal

from pydantic import Field

from pytorch_to_triton.errors import BadDeclaration
from pytorch_to_triton.inputs.case import Argument, ConstantArgument, PackedArgument, TensorArgument
from pytorch_to_triton.inputs.expression import (
    Number,
    at_sizes,
    names_in,
    parse_bound,
    parse_size,
    point_name,
    value_of,
)
from pytorch_to_triton.inputs.listed_values import are_sizes, as_text, is_quoted, parts_listed, values_listed
from pytorch_to_triton.inputs.text_span import TextSpan
from pytorch_to_triton.schema.dtype import OF_INPUTS, TORCH_DTYPES, DType, Scalar
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire.packing import Packing

DTYPES: dict[str, DType] = {name: name for name in OF_INPUTS}
INTEGERS: dict[DType, tuple[int, int]] = {
    "int64": (-(2**63), 2**63),
    "int32": (-(2**31), 2**31),
    "int16": (-(2**15), 2**15),
    "int8": (-(2**7), 2**7),
    "uint8": (0, 2**8),
}
"""What each integer dtype holds: smallest, and largest + 1."""
MOST_SIZES = 64
"""Of one tensor, as torch has it."""
_LARGEST_FLOAT: dict[DType, float] = {"float16": 65504.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
_OTHER_NAMES = {
    "float": "float32", "fp32": "float32", "f32": "float32", "double": "float64", "fp64": "float64",
    "f64": "float64", "half": "float16", "fp16": "float16", "f16": "float16", "bf16": "bfloat16",
    "fp8": "float8_e4m3fn", "float8": "float8_e4m3fn", "int": "int64", "long": "int64", "short": "int16",
    "byte": "uint8", "boolean": "bool",
}  # fmt: skip
_STARTS_WITH_DTYPE = re.compile(rf"\s*(torch\.)?({'|'.join(DTYPES)}|complex(32|64|128)?)\b")
_WORD = re.compile(r"[^\W\d]\w*")
_FORM = (
    "A tensor reads float32[M, N] or int64[M] in 0..N, a dtype to pass torch.float32; put quotes inside the "
    "string to pass it as text."
)


class TensorSpec(Value):
    """A tensor: its dtypes, sizes and range of values. `str()` gives its text back."""

    form: Literal["tensor"] = "tensor"
    dtypes: tuple[DType, ...]
    """The declared dtypes; the first is the one that most cases use."""
    shape: tuple[str, ...]
    """One expression over the dimensions for each size."""
    low: str | None = None
    """Expression of the smallest value, inclusive; None: the dtype's default range."""
    high: str | None = None
    """Expression of the end of the range, exclusive."""
    outside: str | None = None
    """Expression of a value outside of the range that some elements have, as labels that are ignored."""

    def __str__(self) -> str:
        values = f" in {self.low}..{self.high}" if self.low is not None else ""
        outside = f" or {self.outside}" if self.outside is not None else ""
        return f"{'|'.join(self.dtypes)}[{', '.join(self.shape)}]{values}{outside}"

    def names(self) -> frozenset[str]:
        """The dimensions that its sizes and bounds name."""
        bounds = [bound for bound in (self.low, self.high, self.outside) if bound is not None]
        return frozenset().union(*(names_in(text) for text in (*self.shape, *bounds)))

    def shape_at(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        """The sizes at these dimensions. Raises BadDeclaration where one is negative or divides by zero."""
        sizes = tuple(int(value_of(text, dims)) for text in self.shape)
        for text, size in zip(self.shape, sizes, strict=True):
            if size < 0:
                problem = f"the size {text} is {size} at {point_name(dims)}."
                raise BadDeclaration(problem, text, 0, f"Add the requirement {text} >= 0.")
        return sizes

    def fixed_at(self, sizes: Mapping[str, int]) -> "TensorSpec":
        """The same with these dimensions as numbers."""
        shape = tuple(at_sizes(text, sizes) for text in self.shape)
        values = {"low": self.low, "high": self.high, "outside": self.outside}
        fixed = {name: at_sizes(text, sizes) for name, text in values.items() if text is not None}
        return self.model_copy(update={"shape": shape, **fixed})

    def argument(self, name: str, dims: Mapping[str, int], dtype: DType) -> TensorArgument:
        """This tensor at these dimensions. Raises BadDeclaration where no such tensor can be generated."""
        shape = self.shape_at(dims)
        low, high = self._range_at(dims, dtype, empty=0 in shape)
        outside = None if self.outside is None else value_of(self.outside, dims)
        return TensorArgument(name=name, dtype=dtype, shape=shape, low=low, high=high, outside=outside)

    def _range_at(
        self, dims: Mapping[str, int], dtype: DType, *, empty: bool
    ) -> tuple[Number | None, Number | None]:
        if self.low is None or self.high is None or empty:
            return default_range(dtype)
        low, high = value_of(self.low, dims), value_of(self.high, dims)
        if problem := range_problem(dtype, low, high):
            text = f"{self.low}..{self.high}"
            at = f" at {point_name(dims)}" if dims else ""
            hint = "Change the range, or add a requirement that keeps it open."
            raise BadDeclaration(f"the range {text} is {low}..{high}{at}: {problem}.", text, 0, hint)
        return low, high


class SizeSpec(Value):
    """A whole number that is a size: a number of groups `G`, or `N // 2`. `str()` gives its text back."""

    form: Literal["size"] = "size"
    size: str
    """An expression over the dimensions."""

    def __str__(self) -> str:
        return self.size

    def names(self) -> frozenset[str]:
        """The dimensions that it names."""
        return names_in(self.size)

    def fixed_at(self, sizes: Mapping[str, int]) -> "SizeSpec | ConstantSpec":
        """The same with these dimensions as numbers; a constant where it names no other."""
        size = at_sizes(self.size, sizes)
        return SizeSpec(size=size) if names_in(size) else ConstantSpec(value=int(size))

    def at(self, dims: Mapping[str, int]) -> int:
        """The number at these dimensions. Raises BadDeclaration where it divides by zero."""
        return int(value_of(self.size, dims))


class PackedSpec(Value):
    """A dict, list, tuple or object of inputs with names of their own."""

    form: Literal["packed"] = "packed"
    packing: Packing

    def fixed_at(self, sizes: Mapping[str, int]) -> "PackedSpec":
        """The same: only what it holds names dimensions."""
        return self


class ConstantSpec(Value):
    """A number, string, bool, None, or a list of those: passed as it is. `str()` gives the text of several
    values back."""

    form: Literal["constant"] = "constant"
    value: Scalar | tuple[Scalar, ...]
    """The declared value; of several the first, which most cases have."""
    others: tuple[Scalar, ...] = ()
    """The further values that are declared."""

    def __str__(self) -> str:
        return as_text("Input", self.values)

    @property
    def values(self) -> tuple[Scalar, ...]:
        """All of them, of a constant that is no list."""
        assert not isinstance(self.value, tuple)
        return (self.value, *self.others)

    def fixed_at(self, sizes: Mapping[str, int]) -> "ConstantSpec":
        """The same: a constant names no dimensions."""
        return self


InputSpec = Annotated[TensorSpec | SizeSpec | PackedSpec | ConstantSpec, Field(discriminator="form")]


def fixed_spec(dtypes: Sequence[str], shape: Sequence[object]) -> TensorSpec:
    """Of a tensor of a module's own, of any values."""
    return TensorSpec.model_validate({"dtypes": tuple(dtypes), "shape": tuple(map(str, shape))})


def argument_of(name: str, spec: InputSpec, dims: Mapping[str, int], dtypes: Mapping[str, DType]) -> Argument:
    """The argument at these dimensions; `dtypes` by tensor name, the first declared dtype where it has none.

    Raises BadDeclaration where no such tensor can be generated.
    """
    match spec:
        case ConstantSpec(value=value):
            return ConstantArgument(name=name, value=value)
        case SizeSpec():
            return ConstantArgument(name=name, value=spec.at(dims))
        case PackedSpec(packing=packing):
            return PackedArgument(name=name, packing=packing)
    return spec.argument(name, dims, dtypes.get(name, spec.dtypes[0]))


def default_range(dtype: DType) -> tuple[int | None, int | None]:
    """Where integers lie when no range is declared; (None, None) for floats and bool."""
    if dtype not in INTEGERS:
        return None, None
    return INTEGERS[dtype] if dtype == "uint8" else (-100, 100)


def range_problem(dtype: DType, low: Number, high: Number) -> str | None:
    """Why no value of this dtype can be generated in low..high (half-open); None when one can."""
    if low >= high:
        return "it is empty; LOW must be below HIGH"
    if dtype == "bool":
        return "bool takes no range"
    if dtype not in INTEGERS:
        largest = _LARGEST_FLOAT.get(dtype, float("inf"))
        return None if max(-low, high) <= largest else f"{dtype} holds -{largest:g}..{largest:g}"
    if isinstance(low, float) or isinstance(high, float):
        return f"{dtype} takes integer bounds"
    smallest, end = INTEGERS[dtype]
    return None if smallest <= low and high <= end else f"{dtype} holds {smallest}..{end}"


def parse_input(place: str, value: object, known: Collection[str]) -> TensorSpec | SizeSpec | ConstantSpec:
    """What a kernel file or an option declares at `place`, `x` or `xs[0]`, over the dimensions `known`.

    Raises BadDeclaration, pointing at the character that cannot be read.
    """
    label = f"Input {place}"
    if isinstance(value, list | tuple):
        return ConstantSpec(value=tuple(_constant(label, item) for item in value))
    if isinstance(value, str) and is_tensor(value):
        return _parse_tensor(TextSpan.of(label, value), known)
    if isinstance(value, str) and parts_listed(span := TextSpan.of(label, value)):
        if not place.isidentifier():
            hint = "List values of a parameter alone, or name a dim here and list its sizes in DIMS."
            raise span.refusal("values are listed inside of a container.", hint)
        return _parse_values(span, known)
    if isinstance(value, str) and is_size(value, known):
        return SizeSpec(size=parse_size(TextSpan.of(label, value).stripped(), known))
    return ConstantSpec(value=_constant(label, value))


def _parse_values(span: TextSpan, known: Collection[str]) -> ConstantSpec:
    """Several values of a constant. Raises BadDeclaration where one names a dim, and for infinities."""
    for part in parts_listed(span):
        if is_size(part.text, known):
            hint = f"Declare {part.text} alone, as a number of that size; quotes around it make it text."
            raise part.refusal(f"{part.text} names a dim, and sizes are not listed.", hint)
    first, *others = (_constant(span.label, value) for value in values_listed(span))
    return ConstantSpec(value=first, others=tuple(others))


def is_tensor(text: str) -> bool:
    """Whether it declares a tensor; other text is a constant."""
    bracket = "[" in text or "]" in text
    named = bracket or _STARTS_WITH_DTYPE.match(text) is not None
    return named and not is_quoted(text) and not are_dtypes(text)


def are_dtypes(text: str) -> bool:
    """Whether it is a dtype to pass, or lists some: `torch.float32|torch.bfloat16`, with None or without."""
    return all(part.strip() in {*TORCH_DTYPES, "None"} for part in text.split("|"))


def is_size(text: str, known: Collection[str]) -> bool:
    """Whether it names dimensions, `known` ones, and no other words."""
    words = _WORD.findall(text)
    return not is_quoted(text) and bool(words) and all(word in known for word in words)


def sizes_listed_for(name: str, value: object) -> tuple[int, ...]:
    """The values of a parameter that are all sizes, as `1|4|8` lists them; none of anything else.

    Raises BadDeclaration for a list that no parameter can have.
    """
    if not isinstance(value, str) or is_tensor(value):
        return ()
    values = values_listed(TextSpan.of(f"Input {name}", value))
    return tuple(value for value in values if isinstance(value, int)) if are_sizes(values) else ()


def _constant(label: str, value: object) -> Scalar:
    if isinstance(value, str) and not is_quoted(value):
        if value.startswith("torch."):
            _parse_dtype(TextSpan.of(label, value))
        return value
    if isinstance(value, str):
        return value[1:-1]
    if isinstance(value, float) and not isfinite(value):
        hint = (
            "Make it the parameter's default in the target; put quotes inside the string to pass it as text."
        )
        raise TextSpan.of(label, repr(value)).refusal(
            f"{value} cannot be passed: calls are sent as JSON.", hint
        )
    if value is None or isinstance(value, bool | int | float):
        return value
    problem = f"a {type(value).__name__} cannot be passed."
    hint = "Declare a tensor (float32[M, N]), a number, a string, a bool, None, or a dict or list of them."
    raise TextSpan.of(label, repr(value)[:80]).refusal(problem, hint)


def _parse_tensor(span: TextSpan, known: Collection[str]) -> TensorSpec:
    text = span.text
    opening, closing = text.find("["), text.find("]")
    if opening < 0:
        word = re.match(r"[\s\w.|]*[\w.|]", text)
        raise span.refusal("'[' is missing.", _FORM, at=word.end() if word else 0)
    if closing < 0:
        raise span.refusal("']' is missing.", _FORM, at=len(text))
    if closing < opening:
        raise span.refusal("']' comes before '['.", _FORM, at=closing)
    dtypes = tuple(dict.fromkeys(_parse_dtype(part) for part in span.cut(0, opening).split("|")))
    sizes = span.cut(opening + 1, closing)
    parts = sizes.split(",") if sizes.text.strip() else []
    if len(parts) > MOST_SIZES:
        raise sizes.refusal(f"these are {len(parts)} sizes; a tensor has at most {MOST_SIZES}.", _FORM)
    shape = tuple(parse_size(part, known) for part in parts)
    values, outside = _parse_outside(span.cut(closing + 1), dtypes, known)
    low, high = _parse_range(values, dtypes, known)
    return TensorSpec(dtypes=dtypes, shape=shape, low=low, high=high, outside=outside)


def _parse_dtype(span: TextSpan) -> DType:
    name = span.text.removeprefix("torch.")
    if name in DTYPES:
        return DTYPES[name]
    if name.startswith("complex"):
        raise span.refusal(f"{name} is not among the dtypes of inputs.", "Declare complex64.")
    if not name:
        raise span.refusal("a dtype is missing here.", _FORM)
    near = [_OTHER_NAMES[name]] if name in _OTHER_NAMES else get_close_matches(name, DTYPES, n=1, cutoff=0.5)
    meant = f"Did you mean {near[0]}? " if near else ""
    raise span.refusal(f"{name!r} is not a dtype.", f"{meant}The dtypes are {', '.join(DTYPES)}.")


def _parse_outside(
    after: TextSpan, dtypes: tuple[DType, ...], known: Collection[str]
) -> tuple[TextSpan, str | None]:
    """What stands before `or`, and the value behind it. Raises BadDeclaration for one that no dtype holds."""
    word = re.search(r"\bor\b", after.text)
    if word is None:
        return after, None
    value = after.cut(word.end()).stripped()
    outside = parse_bound(value, known)
    for dtype in dtypes:
        number = 0 if names_in(outside) else value_of(outside, {})
        if dtype not in INTEGERS or range_problem(dtype, number, number + 1):
            hint = "Write in LOW..HIGH or VALUE for integers, as in 0..N or -100."
            raise value.refusal(f"{dtype} takes no {outside} beside its range.", hint)
    return after.cut(0, word.start()), outside


def _parse_range(
    after: TextSpan, dtypes: tuple[DType, ...], known: Collection[str]
) -> tuple[str | None, str | None]:
    rest = after.stripped()
    if not rest.text:
        return None, None
    if not re.match(r"in\b", rest.text):
        raise rest.refusal("nothing but a range may follow ']'.", "Write the range as: in LOW..HIGH.")
    bounds = rest.cut(2).stripped()
    dots = bounds.text.find("..")
    if dots < 0:
        raise bounds.refusal("a range needs '..' between its bounds.", "Write in LOW..HIGH, as in 0..N.")
    low = parse_bound(bounds.cut(0, dots).stripped(), known)
    high = parse_bound(bounds.cut(dots + 2).stripped(), known)
    if not names_in(low) | names_in(high):
        for dtype in dtypes:
            if problem := range_problem(dtype, value_of(low, {}), value_of(high, {})):
                raise bounds.refusal(f"{problem}.", "A range is half-open: 0..10 gives 0 to 9.")
    return low, high
