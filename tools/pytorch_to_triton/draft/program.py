"""The traced graph as steps: each operator's value over axes, or a call that stays PyTorch's.

Views vanish here: they become arithmetic on the indices of what they look at.
"""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.functions import Kind
from pytorch_to_triton.draft.ir.sizes import Size
from pytorch_to_triton.draft.ir.values import Argument, Buffer, Load, walk
from pytorch_to_triton.draft.lower.row import ROWS, Context, Refused, load_rows
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, loaded, source
from pytorch_to_triton.graph.tensor_dtypes import UNKNOWN, TensorDtypes
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Graph,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    NonFinite,
    ScalarRef,
    Shape,
    SizeRef,
)

WORDS: Mapping[str, str] = {
    "abs": "magnitude", "max": "largest", "min": "smallest", "pow": "power", "sum": "total", "any": "found",
    "all": "holds", "convolution": "conv",
}  # fmt: skip
"""Names for values whose operator's own name is a Python builtin, or says less."""


@dataclass(frozen=True)
class Step:
    """One value that an operator computes; its operands are Loads of inputs and of other steps' buffers."""

    name: str
    tensor: Tensor
    node: Node

    @property
    def buffer(self) -> Buffer:
        """Where it lies if it is kept."""
        return Buffer(self.name, self.tensor.shape, self.tensor.dtype)


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

    @property
    def steps(self) -> dict[str, Step]:
        """The steps by name."""
        return {i.name: i for i in self.items if isinstance(i, Step)}

    @property
    def calls(self) -> tuple[Call, ...]:
        """What stays PyTorch's."""
        return tuple(i for i in self.items if isinstance(i, Call))


Library = Callable[[Node, Mapping[str, Shape]], str | None]
"""Why a call stays PyTorch's though a row could lower it, or None; it is given the shapes of all tensors."""


def read_program(graph: Graph, reserved: frozenset[str], library: Library) -> Program:
    """Lower every node but those that `library` keeps."""
    load_rows()
    reading = _Reading(graph, reserved, library)
    for node in graph.nodes:
        reading.take(node)
    results = tuple(Result(o.path, reading.tensors[o.name], o.name) for o in graph.outputs)
    program = Program(graph, tuple(reading.items), results, reading.tensors, reading.named, reading.axes)
    return replace(program, items=_live(program))


class _Reading:
    """The way through a graph's nodes."""

    def __init__(self, graph: Graph, reserved: frozenset[str], library: Library) -> None:
        self.graph, self.reserved, self.library = graph, reserved, library
        self.named: dict[str, str] = _names(graph, reserved)
        self.shapes = {i.name: i.shape for i in graph.inputs} | {
            n.name: n.shape for n in graph.nodes if n.shape is not None
        }
        self.axes = Names()
        self.numbers: dict[str, str] = {}
        self.items: list[Step | Call] = []
        self.parts: dict[str, tuple[Tensor, ...]] = {}
        self.tensors: dict[str, Tensor] = {
            i.name: source(self.axes, i.name, shape_of(i.shape), i.dtype) for i in graph.inputs
        }

    def take(self, node: Node) -> None:
        if node.op == "getitem":
            of, index = node.args
            assert isinstance(of, NodeRef)
            assert isinstance(index, Literal_)
            assert isinstance(index.value, int)
            self.tensors[node.name] = self.parts[of.name][index.value]
            return
        try:
            self._lower(node)
        except Refused as refused:
            self._call(node, str(refused))

    def _lower(self, node: Node) -> None:
        if why := self.library(node, self.shapes):
            raise Refused(why)
        if node.op not in ROWS:
            raise Refused("no row lowers it")
        shape = shape_of(node.shape) if node.shape is not None else ()
        context = Context(self.axes, shape, node.dtype or "", self.named[node.name], self._storing(node))
        arguments = [self._argument(a) for a in node.args]
        keywords = {name: self._argument(a) for name, a in node.kwargs.items()}
        found = ROWS[node.op].function(context, *arguments, **keywords)
        if isinstance(found, tuple):
            names = self._part_names(node, len(found))
            parts = [self._kept(node, name, t) for name, t in zip(names, found, strict=True)]
            self.parts[node.name] = tuple(parts)
        else:
            self.tensors[node.name] = self._kept(node, self.named[node.name], found)

    def _storing(self, node: Node) -> Callable[[str, Tensor], Tensor]:
        return lambda name, tensor: self._kept(node, self._fresh(name), tensor)

    def _part_names(self, node: Node, count: int) -> list[str]:
        """A name for each of several results: the caller's variable for it, or `out`, or its number."""
        names = [f"{self.named[node.name]}_{i}" for i in range(count)]
        returned = returned_by(self.graph)
        for item in self.graph.nodes:
            wanted = item.source_name or ("out" if item.name in returned else None)
            if item.op == "getitem" and item.args[0] == NodeRef(name=node.name) and wanted:
                index = int(item.args[1].value)  # type: ignore[union-attr, arg-type]
                names[index] = self._fresh(wanted, names)
        return names

    def _fresh(self, wanted: str, others: Collection[str] = ()) -> str:
        taken = {*self.named.values(), *(i.name for i in self.graph.inputs), *others}
        taken |= {*self.graph.parameters, *self.graph.dims, *self.reserved}
        taken |= {i.name for i in self.items if isinstance(i, Step)}
        options = itertools.chain([wanted], (f"{wanted}_{i}" for i in itertools.count(2)))
        return next(n for n in options if n not in taken)

    def _kept(self, node: Node, name: str, tensor: Tensor) -> Tensor:
        """A view stays a view; a computed value becomes a step, which readers load."""
        if _is_view(tensor):
            return tensor
        step = Step(name, tensor, node)
        self.items.append(step)
        return loaded(step.buffer, tensor.dims)

    def _call(self, node: Node, why: str) -> None:
        reads = dict.fromkeys(b for a in (*node.args, *node.kwargs.values()) for b in self._reads(a))
        name = self.named[node.name]
        if node.shape is not None:
            self.tensors[node.name] = source(self.axes, name, shape_of(node.shape), node.dtype or "float32")
            names: tuple[str, ...] = (name,)
        else:
            items = [
                n for n in self.graph.nodes if n.op == "getitem" and n.args[0] == NodeRef(name=node.name)
            ]
            count = 1 + max((int(n.args[1].value) for n in items), default=-1)  # type: ignore[union-attr, arg-type]
            names = tuple(f"{name}_{i}" for i in range(count))
            parts: list[Any] = [None] * count
            for n in items:
                at = int(n.args[1].value)  # type: ignore[union-attr, arg-type]
                assert n.shape is not None
                parts[at] = source(self.axes, names[at], shape_of(n.shape), n.dtype or "float32")
            self.parts[node.name] = tuple(parts)
        self.items.append(Call(names, node, tuple(reads), why))

    def _reads(self, argument: NodeArgument) -> list[str]:
        match argument:
            case NodeRef(name=name) if name in self.tensors:
                return buffers_of(self.tensors[name])
            case ArgumentList(items=items):
                return [b for i in items for b in self._reads(i)]
        return []

    def _argument(self, argument: NodeArgument) -> Any:
        match argument:
            case NodeRef(name=name):
                return self.tensors[name]
            case Literal_(value=value):
                return value
            case NonFinite(value=text):
                return float(text)
            case ScalarRef(name=name):
                return Argument(name, name)
            case SizeRef():
                return self._size(argument)
            case ArgumentList(items=items):
                return [self._argument(i) for i in items]
        raise AssertionError(argument)

    def _size(self, size: SizeRef) -> Any:
        """A size, or an argument that `run` computes from sizes."""
        try:
            return sizes.size(size.expression)
        except ValueError:
            kind: Kind = "float" if isinstance(size.traced, float) else "int"
            return Argument(self._number(size), size.expression, kind)

    def _number(self, size: SizeRef) -> str:
        """A name of its own for each number that is computed from sizes: `sqrt_n` for math.sqrt(N)."""
        if size.expression not in self.numbers:
            call = re.fullmatch(r"math\.(\w+)\((\w+)\)", size.expression)
            word = "scale" if isinstance(size.traced, float) else "count"
            wanted = size.label or (f"{call[1]}_{call[2].lower()}" if call else word)
            taken = {*self.named.values(), *self.graph.dims, *self.graph.parameters, *self.numbers.values()}
            options = itertools.chain([wanted], (f"{wanted}_{i}" for i in itertools.count(2)))
            self.numbers[size.expression] = next(n for n in options if n not in taken)
        return self.numbers[size.expression]


def with_results_stored(program: Program) -> Program:
    """Results that look at a step in another order, or are copies, are steps of their own, stored as read."""
    items, tensors, names = list(program.items), dict(program.tensors), dict(program.names)
    needed = {r for c in program.calls for r in c.reads}
    needed |= {b for r in program.results if is_plain(r.tensor) for b in buffers_of(r.tensor)}
    results = []
    for result in program.results:
        base = buffers_of(result.tensor)[0] if buffers_of(result.tensor) else ""
        moved = base in program.steps and base not in needed and not is_plain(result.tensor)
        if moved or _is_copy(program, result.node):
            name = names.get(result.node) or result.node
            node = next(n for n in program.graph.nodes if n.name == result.node)
            step = Step(name, result.tensor, node)
            items.append(step)
            tensors[result.node] = loaded(step.buffer, result.tensor.dims)
            names[result.node] = name
            result = replace(result, tensor=tensors[result.node])
        results.append(result)
    return replace(program, items=tuple(items), results=tuple(results), tensors=tensors, names=names)


VIEWS = frozenset({
    "alias", "detach", "diagonal", "expand", "permute", "select", "slice", "split", "split_with_sizes",
    "squeeze", "t", "transpose", "unbind", "unfold", "unsqueeze", "view",
})  # fmt: skip
"""Operators whose results share memory with their operand."""


def _is_copy(program: Program, name: str) -> bool:
    """Whether a result that only looks at a tensor has memory of its own."""
    nodes = {n.name: n for n in program.graph.nodes}
    computed = {i.node.name for i in program.items}
    while name in nodes and name not in computed:
        node = nodes[name]
        if node.op != "getitem" and node.op.split(".")[1] not in VIEWS:
            return True
        first = node.args[0]
        if not isinstance(first, NodeRef):
            return False
        name = first.name
    return False


def _is_view(tensor: Tensor) -> bool:
    """Whether it only looks at a buffer: all elements are of it, and where they lie follows from no data."""
    match tensor.value:
        case Load(buffer=buffer, index=index, where=None):
            return buffer.dtype == tensor.dtype and not any(isinstance(v, Load) for v in walk(*index))
    return False


def is_plain(tensor: Tensor) -> bool:
    """Whether it is a buffer as it lies."""
    return isinstance(tensor.value, Load) and tensor.value.index == tensor.indices


def buffers_of(tensor: Tensor) -> list[str]:
    """The buffers that a tensor's value reads."""
    return [v.buffer.name for v in walk(tensor.value) if isinstance(v, Load)]


def shape_of(shape: Shape) -> tuple[Size, ...]:
    """A traced shape in sizes; what was 1 in the trace is 1."""
    return tuple(
        sizes.size(1) if n == 1 else sizes.size(e)
        for e, n in zip(shape.expressions, shape.traced, strict=True)
    )


def _names(graph: Graph, reserved: frozenset[str]) -> dict[str, str]:
    """A readable, unique name for every node: the caller's variable, `out`, or a word for the operator."""
    taken = set(reserved) | set(graph.parameters) | set(graph.dims) | {i.name for i in graph.inputs}
    returned = returned_by(graph)
    names = {}
    for node in graph.nodes:
        if node.op == "getitem":
            continue
        operator = node.op.split(".")[1].strip("_")
        wanted = node.source_name or ("out" if node.name in returned else WORDS.get(operator, operator))
        name, n = wanted, 1
        while name in taken or keyword.iskeyword(name):
            n += 1
            name = f"{wanted}_{n}"
        taken.add(name)
        names[node.name] = name
    return names


def returned_by(graph: Graph) -> set[str]:
    """The nodes that hold what the caller's function returns: not what is saved, nor gradients."""
    return {o.name for o in graph.outputs if o.path.startswith("out")}


def _live(program: Program) -> tuple[Step | Call, ...]:
    """What a result depends on."""
    needed = {b for r in program.results for b in buffers_of(r.tensor)}
    live: list[Step | Call] = []
    for item in reversed(program.items):
        made = {item.name} if isinstance(item, Step) else set(item.names)
        if made & needed:
            live.append(item)
            needed |= set(buffers_of(item.tensor) if isinstance(item, Step) else item.reads)
    return tuple(reversed(live))
