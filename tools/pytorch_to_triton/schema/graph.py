"""The traced program as plain data: what torch.export saw, with the caller's own names.

Sizes are written as expressions over the declared dims (`M`, `2*H`, `(N + 1)//2`) and also as the
sizes at which the program was traced. Those are distinct for distinct dims, so equal traced sizes mean equal
dims.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pytorch_to_triton.schema.dtype import DType, Scalar
from pytorch_to_triton.schema.value import Value
from pytorch_to_triton.worker.wire.packing import Packing


class NodeRef(Value):
    """An argument that is another node's (or an input's) value."""

    form: Literal["node"] = "node"
    name: str


class ScalarRef(Value):
    """An argument that is one of the function's own float arguments, or computed of some alone."""

    form: Literal["scalar"] = "scalar"
    name: str
    """Python over the function's arguments, e.g. `beta`, `1 - beta`."""


class SizeRef(Value):
    """A number that depends on the input's sizes: a size, or what is computed from sizes."""

    form: Literal["size"] = "size"
    expression: str
    """Python over the dims, e.g. `N`, `1.0 / math.sqrt(N)`."""
    traced: int | float
    label: str | None = None
    """The variable that the caller's source assigns it to."""


class Literal_(Value):
    """A constant; dtypes, devices and layouts are given by name."""

    form: Literal["literal"] = "literal"
    value: Scalar


class NonFinite(Value):
    """An infinity or NaN, which JSON does not have."""

    form: Literal["nonfinite"] = "nonfinite"
    value: Literal["inf", "-inf", "nan"]


class ArgumentList(Value):
    """A list or tuple of arguments."""

    form: Literal["list"] = "list"
    items: tuple[NodeArgument, ...]


NodeArgument = Annotated[
    NodeRef | ScalarRef | SizeRef | Literal_ | NonFinite | ArgumentList, Field(discriminator="form")
]


class Shape(Value):
    """A tensor's shape: `expressions` over the dims, and the sizes at which it was `traced`."""

    expressions: tuple[str, ...]
    traced: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.traced)


class TensorInput(Value):
    """A tensor argument of the function, or a parameter or buffer of the module."""

    name: str
    shape: Shape
    dtype: DType
    """As traced."""
    dtypes: tuple[DType, ...] = ()
    """All declared dtypes, in which it was traced; empty: only `dtype`."""


class Node(Value):
    """One operator call. `shape` and `dtype` are None for operators that return a tuple of tensors."""

    name: str
    """Unique in the graph."""
    op: str
    """As torch names it: `aten.add.Tensor`, `getitem`."""
    args: tuple[NodeArgument, ...]
    kwargs: dict[str, NodeArgument]
    shape: Shape | None
    dtype: DType | None
    source_name: str | None = None
    """The variable that the caller's source assigns this value to."""
    line: int | None = None
    """Line of the caller's source that computes it."""
    ends_operator: bool = False
    """Whether it is a cast that torch added when it took an operator apart: no rounding of the caller's."""


class GraphOutput(Value):
    """One tensor of the result; `path` as in `out`, `out[0]`, `out.a`."""

    path: str
    name: str
    """The node or input that holds it."""


class DtypeChoice(Value):
    """A number that the function chooses by a dtype, e.g. an eps; it stands among the constants as well."""

    name: str
    tensors: tuple[str, ...]
    """The tensor whose dtype decides; of several, what their dtypes promote to."""
    values: dict[DType, float]


class Joint(Value):
    """What a graph has beside the function's own, where its gradients were traced with it."""

    cotangents: dict[str, str]
    """Inputs that are gradients of results -> the result's path."""
    gradients: dict[str, str]
    """Inputs of the function -> the path of their gradient among the outputs."""
    saved: tuple[str, ...]
    """Nodes and inputs whose values gradients are computed from; all else is computed again."""


class Graph(Value):
    """A function as inputs, operator calls in order, and outputs."""

    function: str
    """The function's or class's name."""
    parameters: tuple[str, ...]
    """All parameter names of the signature that `run` gets, in order, tensors and constants."""
    inputs: tuple[TensorInput, ...]
    state: dict[str, str]
    """Those inputs that are a module's parameters and buffers: name -> state_dict key."""
    constants: dict[str, Scalar | tuple[Scalar, ...]]
    """Arguments that are no tensors, with the values they were traced with."""
    listed: dict[str, tuple[Scalar, ...]] = Field(default_factory=dict)
    """Those of which several values are declared, with these: `run` takes each of them."""
    sizes: dict[str, str] = Field(default_factory=dict)
    """Arguments that are whole numbers -> the size that each of them is, over the dims."""
    packings: dict[str, Packing] = Field(default_factory=dict)
    """Parameters that hold inputs and constants, which have names of their own."""
    fixed: tuple[str, ...]
    """Constants whose value shaped the trace: `run` accepts no other."""
    nodes: tuple[Node, ...]
    outputs: tuple[GraphOutput, ...]
    result: Packing | str = "out"
    """How the outputs are returned, by their paths, with the source of what is no tensor among them."""
    dims: dict[str, int]
    """Every dim with the size at which it was traced."""
    guards: tuple[str, ...]
    """Conditions on dims that torch.export found, as expressions, e.g. `N % 2 == 0`."""
    choices: tuple[DtypeChoice, ...] = ()
    updated: tuple[str, ...] = ()
    """State that the module, in training, also writes to, such as running statistics; no node computes it."""
    alike: tuple[tuple[str, ...], ...] = ()
    """Inputs that have one dtype in every call: torch refuses mixtures."""
    joint: Joint | None = None
    written: dict[str, str] = Field(default_factory=dict)
    """Inputs that the function writes to -> the path of their value after the call among the outputs."""
    autocast: bool = False
    """Whether it casts by torch.autocast("cuda"), traced as on a GPU: on a CPU that does nothing."""


ArgumentList.model_rebuild()
