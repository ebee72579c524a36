"""What a target takes and declares, as the worker found it."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from pytorch_to_triton.schema.target import Target
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire.packing import Packing
from pytorch_to_triton.worker.wire.tracing import FreeSizes

Kind = Literal["kernel_file", "model_file", "function", "module"]


class Parameter(Value):
    """A parameter of the signature; of a module, of forward without `self`."""

    name: str
    variadic: bool
    """`*args` or `**kwargs`."""
    by_keyword: bool = False
    """Whether it, or what it collects, is passed by name alone."""
    required: bool
    default: str
    """The default's repr; empty when there is none."""
    scalar: str = ""
    """`int`, `float`, `bool` or `str` where it takes one of those; empty: anything."""


class TensorExample(Value):
    """A tensor that get_inputs() returned."""

    form: Literal["tensor"] = "tensor"
    name: str
    dtype: str
    shape: tuple[int, ...]
    low: int | None
    """Smallest value of an integer tensor; None for others."""
    high: int | None
    """Largest value of an integer tensor, plus one."""


class ConstantExample(Value):
    """Anything else that get_inputs() returned."""

    form: Literal["constant"] = "constant"
    name: str
    value: JsonValue


class PackedExample(Value):
    """A parameter that holds examples before it, under the names that they have there."""

    form: Literal["packed"] = "packed"
    name: str
    packing: Packing


Example = Annotated[TensorExample | ConstantExample | PackedExample, Field(discriminator="form")]


class StateTensor(Value):
    """A parameter or buffer of a module, by a name made of its state_dict's key: `layers_0_weight`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: int | None
    high: int | None
    trained: bool
    """True for a parameter, False for a buffer."""
    saved: bool
    """Whether the state_dict has it: a candidate need not take any other."""


class Description(Value):
    """A loaded target."""

    target: Target
    kind: Kind
    name: str
    """What is called: `reference`, `run`, `Model`, `ModelNew`, or the target's own name."""
    parameters: tuple[Parameter, ...]
    inputs: dict[str, JsonValue] | None
    """The file's INPUTS as they stand; None where it declares none."""
    dims: dict[str, JsonValue]
    requires: list[str]
    compare: list[JsonValue] = Field(default_factory=list)
    """The file's COMPARE as it stands."""
    bytes_moved: str | None = None
    """The file's BYTES: an expression over the dims for what a call must move at least."""
    flops: str | None = None
    """The file's FLOPS, in the same way."""
    generates_inputs: bool
    """The file defines `inputs(**dims)`."""
    state: tuple[StateTensor, ...]
    """Parameters and buffers of a module; empty for a function."""
    unsaved: tuple[str, ...] = ()
    """Buffers of a module that are not among its state, by their names."""
    attributes: tuple[str, ...] = ()
    """Those of both whose names are plain attributes, which a reference registers as buffers."""
    needs_memory: bool = False
    """A module cannot be made on the meta device: it holds tensors that are not among its state, or its
    construction reads values."""
    drawn: tuple[str, ...] = ()
    """Numbers among a module's attributes that are others each time it is constructed."""
    examples: tuple[Example, ...] | None
    """What get_inputs() returns; None where the file has none."""
    configurations: int = 1
    """Of a candidate: the most that an autotuned kernel has, of those that the file's globals lead to. Under
    the interpreter those count once that differ in warps and stages alone."""
    free: FreeSizes | None = None
    """Of a reference with get_inputs() alone; None where all sizes are fixed."""

    @property
    def is_module(self) -> bool:
        """Whether it is a class of modules, by itself or as a file with Model and get_inputs()."""
        return self.kind in ("module", "model_file")
