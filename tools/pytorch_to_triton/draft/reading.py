"""A traced graph as a program: every node lowered by its row, or left to PyTorch."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytorch_to_triton.draft.defects import reason_of
from pytorch_to_triton.draft.divisors import divisors_of
from pytorch_to_triton.draft.exactness import exact_steps, made_exact
from pytorch_to_triton.draft.fresh_names import fresh, in_words
from pytorch_to_triton.draft.ir import sizes
from pytorch_to_triton.draft.ir.functions import Kind
from pytorch_to_triton.draft.ir.monoids import WITHOUT_POSITION, identities
from pytorch_to_triton.draft.ir.rewriting import rewrite
from pytorch_to_triton.draft.ir.values import (
    Argument,
    Buffer,
    Const,
    Extent,
    Get,
    Index,
    Load,
    Map,
    Reduce,
    Value,
    kind_of,
    named,
    op,
    walk,
)
from pytorch_to_triton.draft.library import (
    CHANNELS_LAST,
    CONVOLUTION,
    Way,
    Ways,
    has_channels_last,
    shapes_of,
)
from pytorch_to_triton.draft.lower.creation import filled
from pytorch_to_triton.draft.lower.row import ROWS, WIDTHS, Context, Limit, Refused, always_within, load_rows
from pytorch_to_triton.draft.lower.tensor import Names, Tensor, expanded, is_view, loaded, position, source
from pytorch_to_triton.draft.program import (
    Call,
    ConvolutionCall,
    Program,
    Result,
    Step,
    buffers_of,
    is_plain,
    seed_for,
    shape_of,
)
from pytorch_to_triton.graph.skeleton import operands
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Graph,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    NonFinite,
    ScalarRef,
    SizeRef,
)

WORDS: Mapping[str, str] = {
    "abs": "magnitude", "max": "largest", "min": "smallest", "pow": "power", "sum": "total",
    "any": "any_true", "all": "all_true", "convolution": "conv", "rsqrt": "rstd", "mul": "product",
    "sub": "difference", "div": "ratio", "neg": "negated", "clamp": "clamped", "where": "chosen",
    "native_dropout": "dropout",
}  # fmt: skip
"""Names for values whose operator's own name is a Python builtin, or names no value."""


EMPTY = frozenset({"aten.empty.memory_format", "aten.empty_permuted.default", "aten.empty_strided.default"})
"""Operators whose memory no kernel needs to write: what is computed from it is not read."""
CHOOSING = frozenset({"aten.slice.Tensor", "aten.select.int"})
"""Operators whose result is a part of their input."""
LEFT = "the library's is faster"
"""Why a call stays PyTorch's that a row could lower."""


def read_program(
    graph: Graph, reserved: frozenset[str], ways: Ways, points: Sequence[Mapping[str, int]] = ()
) -> Program:
    """Lower every node but those that stay a library's, for use at these sizes."""
    load_rows()
    reading = _Reading(graph, reserved, ways, points)
    for node in graph.nodes:
        reading.take(node)
    results = tuple(Result(o.path, reading.tensors[o.name], o.name) for o in graph.outputs)
    program = Program(graph, tuple(reading.items), results, reading.tensors, reading.named, reading.axes)
    return replace(program, items=_without_unread_positions(_live(program)), limits=tuple(reading.limits))


def _of_nothing(v: Value) -> Value | None:
    """What a reduction of no elements gives."""
    match v:
        case Reduce(monoid=m, axes=axes) if m.is_plain and any(a.size == 0 for a in axes):
            return Const(identities(m, kind_of(v))[0])
    return None


class _Reading:
    """The way through a graph's nodes."""

    def __init__(
        self, graph: Graph, reserved: frozenset[str], ways: Ways, points: Sequence[Mapping[str, int]]
    ) -> None:
        self.graph, self.reserved, self.ways, self.points = graph, reserved, ways, points
        self.limits: list[str] = []
        self.named: dict[str, str] = _names(graph, reserved)
        self.shapes = shapes_of(graph)
        self.exact = exact_steps(graph)
        self.divisors = divisors_of(graph)
        self.axes = Names()
        self.numbers: dict[str, str] = {}
        self.items: list[Step | Call] = []
        self.made: dict[str, Tensor] = {}
        self.parts: dict[str, tuple[Tensor, ...]] = {}
        self.tensors: dict[str, Tensor] = {
            i.name: source(self.axes, i.name, shape_of(i.shape, self.divisors), i.dtype) for i in graph.inputs
        }

    def take(self, node: Node) -> None:
        if node.op == "getitem":
            of, index = node.args
            assert isinstance(of, NodeRef)
            assert isinstance(index, Literal_)
            assert isinstance(index.value, int)
            part = self.parts[of.name][index.value]
            self.tensors[node.name] = replace(part, value=named(node.source_name, part.value))
            return
        try:
            self._lower(node)
        except Refused as refused:
            self._call(node, str(refused))
        except Exception as error:
            self._call(node, reason_of(error))

    def _lower(self, node: Node) -> None:
        if reason := dict(self.ways.left).get(node.name):
            raise Refused(reason)
        way = self.ways.of(node, self.shapes)
        if way != "own kernels":
            if node.op != CONVOLUTION:
                raise Refused(LEFT)
            self._convolve(node, way)
            return
        if node.op not in ROWS:
            raise Refused("no kernel is drafted for this operator")
        if node.op in EMPTY and any(node.name in operands(n) and n.op not in ROWS for n in self.graph.nodes):
            raise Refused("a call of PyTorch fills it")
        dtypes = [node.dtype, *(self.tensors[n].dtype for n in operands(node) if n in self.tensors)]
        if undrafted := next((d for d in dtypes if d and d not in WIDTHS), None):
            raise Refused(f"no kernel computes in {undrafted}")
        shape = shape_of(node.shape, self.divisors) if node.shape is not None else ()
        name = self.named[node.name]

        def stored(name: str, tensor: Tensor) -> Tensor:
            return self._kept(node, self._free(name), tensor)

        def seed() -> Value:
            self.items.append(drawn := seed_for(node, self._free("seed")))
            return drawn.value

        limits: list[str] = []

        def is_within(*any_of: Limit) -> bool:
            if always_within(*any_of):
                return True
            if not self.points or not all(_is_met(any_of, point) for point in self.points):
                return False
            open_ = (f"{sizes.text(size)} <= {most}" for size, most in any_of if not size.is_Integer)
            limits.append(" or ".join(dict.fromkeys(open_)))
            return True

        context = Context(self.axes, shape, node.dtype or "", name, stored, seed, self.made, is_within)
        arguments = [self._argument(a) for a in node.args]
        keywords = {name: self._argument(a) for name, a in node.kwargs.items()}
        if node.shape is not None and 0 in shape:
            found: Tensor | tuple[Tensor, ...] = filled(context, 0)
        else:
            found = ROWS[node.op].lowered(context, arguments, keywords)
        self.limits += limits
        if isinstance(found, tuple):
            names = self._part_names(node, len(found))
            parts = [self._kept(node, name, t) for name, t in zip(names, found, strict=True)]
            self.parts[node.name] = tuple(parts)
        else:
            # A tensor that holds one number everywhere comes as that number, and has no dimensions.
            whole = expanded(self.axes, found, shape) if node.shape is not None else found
            whole = replace(whole, value=rewrite(whole.value, _of_nothing))
            self.tensors[node.name] = self._kept(node, name, whole)

    def _part_names(self, node: Node, count: int) -> list[str]:
        """A name for each of several results: the caller's variable for it, or `out`, or its number."""
        names = self._numbered(node, count)
        returned = returned_by(self.graph)
        for index, item in self._parts_of(node):
            if wanted := item.source_name or ("out" if item.name in returned else None):
                names[index] = self._free(wanted, names)
        return names

    def _numbered(self, node: Node, count: int) -> list[str]:
        """A name for each of several results: the node's with the result's number."""
        names: list[str] = []
        for i in range(count):
            names.append(self._free(f"{self.named[node.name]}_{i}", names))
        return names

    def _parts_of(self, node: Node) -> list[tuple[int, Node]]:
        """The nodes that take one of several results, with its number."""
        return [
            (int(n.args[1].value), n)  # type: ignore[union-attr, arg-type]
            for n in self.graph.nodes
            if n.op == "getitem" and n.args[0] == NodeRef(name=node.name)
        ]

    def _free(self, name: str, others: Collection[str] = ()) -> str:
        taken = {*self.named.values(), *(i.name for i in self.graph.inputs), *others}
        taken |= {*self.graph.parameters, *self.graph.dims, *self.reserved, *self.numbers.values()}
        taken |= {n for i in self.items for n in ((i.name,) if isinstance(i, Step) else i.names)}
        return fresh(name, taken)

    def _kept(self, node: Node, name: str, tensor: Tensor) -> Tensor:
        """A view stays a view; a computed value becomes a step, which readers load."""
        if is_view(tensor):
            of_source = node.source_name if node.op in CHOOSING else None
            return replace(tensor, value=named(of_source, tensor.value))
        if node.name in self.exact:
            tensor = replace(tensor, value=made_exact(tensor.value, next(reversed(tensor.axes), None)))
        step = Step(name, tensor, node)
        self.items.append(step)
        if all(isinstance(v, Const | Index | Extent | Map) for v in walk(tensor.value)):
            self.made[name] = tensor
        return loaded(step.buffer, tensor.dims)

    def _convolve(self, node: Node, way: Way) -> None:
        """The library's call without its bias, in memory order of its own where that is wanted."""
        x, bias = self._argument(node.args[0]), self._argument(node.args[2])
        assert node.shape is not None
        shape, name = shape_of(node.shape, self.divisors), self.named[node.name]
        read = [b for a in node.args[:2] for b in self._reads(a)]
        order: tuple[int, ...] = ()
        result = name
        if way == CHANNELS_LAST and has_channels_last(node, self.shapes):
            order = (0, *range(2, len(shape)), 1)
            suffix = "nhwc" if len(shape) == 4 else "ndhwc"
            read[0] = self._in_order(node, x, order, suffix)
            result = self._free(f"{name}_{suffix}")
        elif bias is not None:
            result = self._free(f"{name}_without_bias")
        dims = self.axes.dims(shape)
        places = order or tuple(range(len(shape)))
        memory = Buffer(result, tuple(shape[d] for d in places), node.dtype or "float32")
        index = tuple(position(dims[d]) for d in places)
        self.items.append(ConvolutionCall((result,), node, tuple(dict.fromkeys(read)), LEFT, order))
        value: Value = Load(memory, index, name=name)
        if bias is not None:
            value = op("add", value, bias.at(position(dims[1])))
        self.tensors[node.name] = self._kept(node, name, Tensor(dims, value, memory.dtype))

    def _in_order(self, node: Node, x: Tensor, order: tuple[int, ...], suffix: str) -> str:
        """What holds the tensor with its dimensions in this order: a step, if nothing does yet."""
        moved = replace(x, dims=tuple(x.dims[d] for d in order))
        if is_plain(moved):
            return buffers_of(moved)[0]
        base = buffers_of(x)[0] if is_view(x) else self.named[node.name]
        step = Step(self._free(f"{base}_{suffix}"), moved, node)
        self.items.append(step)
        return step.name

    def _call(self, node: Node, why: str) -> None:
        reads = dict.fromkeys(b for a in (*node.args, *node.kwargs.values()) for b in self._reads(a))
        name = self.named[node.name]
        if node.shape is not None:
            self.tensors[node.name] = source(
                self.axes, name, shape_of(node.shape, self.divisors), node.dtype or "float32"
            )
            names: tuple[str, ...] = (name,)
        else:
            items = self._parts_of(node)
            count = 1 + max((at for at, _ in items), default=-1)
            names = tuple(self._numbered(node, count))
            parts: list[Any] = [None] * count
            for at, n in items:
                assert n.shape is not None
                parts[at] = source(
                    self.axes, names[at], shape_of(n.shape, self.divisors), n.dtype or "float32"
                )
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
            case ScalarRef(name=source):
                if not source.isidentifier() and source not in self.numbers:
                    self.numbers[source] = self._free(in_words(source))
                return Argument(self.numbers.get(source, source), source, is_of_sizes=False)
            case SizeRef():
                return self._size(argument)
            case ArgumentList(items=items):
                return [self._argument(i) for i in items]
        raise AssertionError(argument)

    def _size(self, size: SizeRef) -> Any:
        """A size, or an argument that `run` computes from sizes."""
        try:
            return sizes.in_quotients(sizes.size(size.expression), self.divisors)
        except ValueError:
            kind: Kind = "float" if isinstance(size.traced, float) else "int"
            return Argument(self._number(size), size.expression, kind)

    def _number(self, size: SizeRef) -> str:
        """A name of its own for each number that is computed from sizes: `sqrt_n` for math.sqrt(N)."""
        if size.expression not in self.numbers:
            call = re.fullmatch(r"math\.(\w+)\((\w+)\)", size.expression)
            word = "scale" if isinstance(size.traced, float) else "count"
            word = f"{call[1]}_{call[2].lower()}" if call else word
            self.numbers[size.expression] = self._free(size.label or word)
        return self.numbers[size.expression]


def _is_met(any_of: Sequence[Limit], point: Mapping[str, int]) -> bool:
    """Whether one of the limits holds at these sizes, which may lack a dim that values decide."""
    known = ((size, most) for size, most in any_of if sizes.names(sizes.in_dims(size)) <= point.keys())
    return any(sizes.value(size, point) <= most for size, most in known)


def _names(graph: Graph, reserved: frozenset[str]) -> dict[str, str]:
    """A readable, unique name for every node: the caller's variable, `out`, or a word for the operator."""
    taken = {*reserved, *keyword.kwlist, *graph.parameters, *graph.dims, *(i.name for i in graph.inputs)}
    returned = returned_by(graph)
    names = {}
    for node in graph.nodes:
        if node.op == "getitem":
            continue
        operator = node.op.split(".")[1].strip("_")
        wanted = node.source_name or ("out" if node.name in returned else WORDS.get(operator, operator))
        names[node.name] = fresh(wanted, taken)
        taken.add(names[node.name])
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


def _without_unread_positions(items: Sequence[Step | Call]) -> tuple[Step | Call, ...]:
    """Extremes whose position nothing reads are found without it, as by amax and amin."""
    steps = [item for item in items if isinstance(item, Step)]
    located = {v.of for s in steps for v in walk(s.tensor.value) if isinstance(v, Get) and v.part == 1}

    def plain(v: Value) -> Value | None:
        match v:
            case Get(of=Reduce(monoid=m, args=(x, _), axes=axes) as best, part=0) if m in WITHOUT_POSITION:
                return None if best in located else Reduce(WITHOUT_POSITION[m], (x,), axes, name=v.name)
        return None

    return tuple(
        replace(item, tensor=replace(item.tensor, value=rewrite(item.tensor.value, plain)))
        if isinstance(item, Step)
        else item
        for item in items
    )
