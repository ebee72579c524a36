"""The traced graph as steps: each operator's value over axes, or a call that stays PyTorch's.

Views vanish here: they become arithmetic on the indices of what they look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pytorch_to_triton.draft.fresh_names import fresh
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.rewriting import rewrite, substitute
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import (
    Axis,
    Buffer,
    Load,
    Reduce,
    Scan,
    Store,
    Value,
    axes_in_order,
    walk,
)
from pytorch_to_triton.draft.lower.tensor import Dim, Names, Tensor, limited, positions
from pytorch_to_triton.graph.skeleton import UNKNOWN, TensorDtypes
from pytorch_to_triton.schema.graph import Graph, Node, Shape

SAVED = "saved "
"""Begins the path of what the forward half computes for its gradients alone."""


@dataclass(frozen=True)
class Step:
    """One value that an operator computes; its operands are Loads of inputs and of other steps' buffers."""

    name: str
    tensor: Tensor
    node: Node
    is_kept: bool = False
    """Whether it lies in memory, whatever its readers are."""
    rounds: bool = False
    """Whether its readers take it as it lies there."""

    @property
    def buffer(self) -> Buffer:
        """Where it lies if it is kept."""
        return Buffer(self.name, self.tensor.shape, self.tensor.dtype)

    @property
    def store(self) -> Store:
        """Its value in memory."""
        return Store(self.buffer, self.tensor.indices, self.tensor.value, rounds=self.rounds)

    @property
    def anchors(self) -> list[Reduce | Scan]:
        """What it reduces or scans itself."""
        return anchors_of(self.tensor.value)


@dataclass(frozen=True)
class Call:
    """An operator call that stays PyTorch's."""

    names: tuple[str, ...]
    """Its results."""
    node: Node
    reads: tuple[str, ...]
    """The inputs and steps that its operands are, or look at."""
    why: str
    """Why no kernel computes it: the end of a sentence."""


@dataclass(frozen=True)
class Seed(Call):
    """A number that torch's generator draws, for the random numbers of a kernel."""

    @property
    def value(self) -> Value:
        """As a kernel reads it; int64."""
        (name,) = self.names
        return Load(Buffer(name, (), "int64"), (), name=name)


def seed_for(node: Node, name: str) -> Seed:
    """The seed of what a node draws, under that name."""
    scalar = Shape(expressions=(), traced=())
    drawn = node.model_copy(
        update={"name": name, "op": "aten.randint.low", "args": (), "kwargs": {}, "shape": scalar}
    )
    return Seed((name,), drawn, (), "the seed of a kernel's random numbers")


@dataclass(frozen=True)
class ConvolutionCall(Call):
    """A convolution by the library, without its bias, which a kernel adds."""

    order: tuple[int, ...] = ()
    """Its input's and its result's dimensions in memory, where that is not their own order."""


@dataclass(frozen=True)
class Result:
    """One tensor that the function returns."""

    path: str
    tensor: Tensor
    node: str
    """The graph's name for it."""
    dtype: str = ""
    """As source, e.g. `x.dtype`."""


@dataclass(frozen=True)
class Program:
    """Steps and calls in order of computation."""

    graph: Graph
    items: tuple[Step | Call, ...]
    results: tuple[Result, ...]
    tensors: Mapping[str, Tensor]
    """Every node's value as a reader sees it, by the graph's names."""
    names: Mapping[str, str]
    """The graph's name of a computing node -> its name in the draft."""
    axes: Names
    dtypes: TensorDtypes = UNKNOWN
    """PyTorch's own."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Inputs, steps and results of calls -> the dtype in which they lie in memory, as source."""
    limits: tuple[str, ...] = ()
    """Conditions on sizes, beyond which its steps take too long."""

    @property
    def steps(self) -> dict[str, Step]:
        """The steps by name."""
        return {i.name: i for i in self.items if isinstance(i, Step)}

    @property
    def calls(self) -> tuple[Call, ...]:
        """What stays PyTorch's."""
        return tuple(i for i in self.items if isinstance(i, Call))


def is_plain(tensor: Tensor) -> bool:
    """Whether it is a buffer as it lies, and all of it."""
    match tensor.value:
        case Load(buffer=buffer, index=index, where=None):
            return index == tensor.indices and all(map(sizes.equal, buffer.shape, tensor.shape))
    return False


def buffers_of(tensor: Tensor) -> list[str]:
    """The buffers that a tensor's value reads."""
    return [v.buffer.name for v in walk(tensor.value) if isinstance(v, Load)]


def anchors_of(value: Value) -> list[Reduce | Scan]:
    """The reductions and scans inside of the value, inner ones first."""
    return [v for v in walk(value) if isinstance(v, Reduce | Scan)]


def reduces_of(value: Value) -> list[Reduce]:
    """The reductions inside of the value, inner ones first."""
    return [v for v in anchors_of(value) if isinstance(v, Reduce)]


def read_through(v: Load, producer: Step, value: Value) -> Value:
    """What was computed there, in place of a Load of it."""
    to: dict[Axis, Value] = {}
    for dim, index in zip(producer.tensor.dims, v.index, strict=True):
        to |= positions(dim, index)
    new = substitute(value, to)
    return new if v.where is None else limited(new, v.where, v.other)


def taken_apart(
    step: Step, value: Value, following: Callable[[Value], Reduce | None], taken: set[str]
) -> Iterator[Step]:
    """A step for each reduction of the value that is `following`, and the step that goes on with them.

    Their names are added to those that are `taken`.
    """
    while (inner := following(value)) is not None:
        name = fresh(inner.name or f"{step.name}_{inner.monoid.name}", taken)
        taken.add(name)
        part = inner_step(step, name, tuple((a,) for a in axes_in_order(inner)), inner)
        yield part
        load = Load(part.buffer, part.tensor.indices, name=name)
        value = rewrite(value, lambda v: load if v == inner else None)  # noqa: B023 (used at once)
    yield replace(step, tensor=replace(step.tensor, value=value))


def inner_step(step: Step, name: str, dims: tuple[Dim, ...], value: Value) -> Step:
    """A step for what is computed on the way to another one, never rounded to 16 bits."""
    dtype = "float32" if step.tensor.dtype in ("float16", "bfloat16") else step.tensor.dtype
    return Step(name, Tensor(dims, value, dtype), step.node.model_copy(update={"source_name": None}))


def shape_of(shape: Shape, divisors: Mapping[str, Size]) -> tuple[Size, ...]:
    """A traced shape in sizes, in shares of dims with known `divisors`; what was 1 in the trace is 1."""
    return tuple(
        sizes.ONE if n == 1 else sizes.in_quotients(sizes.size(e), divisors)
        for e, n in zip(shape.expressions, shape.traced, strict=True)
    )
