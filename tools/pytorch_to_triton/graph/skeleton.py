"""A traced program but for the widths of its floats, and the dtypes in which PyTorch has its tensors.

A draft computes in float32 whatever the dtype; what it keeps in memory, and what it hands to PyTorch, is in
PyTorch's own dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice

from pytorch_to_triton.graph.dtype_rules import (
    FLOATS,
    SIGNED,
    all_dtypes,
    dtype_source,
    input_dtypes,
    promoted_dtype,
)
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Graph,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
)

CASTS = ("aten._to_copy.default", "aten.to.dtype")
ROUNDED = ("bfloat16", "float16")
"""What a cast to these loses is written into a kernel; wider dtypes are what it computes in."""

Chain = tuple[tuple[str, DType | None], ...]
"""A value, and the casts between floats that it went through: their names and dtypes."""


@dataclass(frozen=True)
class SkeletonCall:
    """One operator call with its operands numbered and its float dtypes left open."""

    op: str
    arguments: tuple[object, ...]
    literals: tuple[float, ...] = ()
    """Its float numbers, in order; in `arguments` their places are left open."""
    kind: str | None = None
    shape: tuple[str, ...] | None = None
    node: str = field(default="", compare=False)
    line: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        name = f"`{self.op.split('.')[1] if '.' in self.op else self.op}`"
        return name if self.line is None else f"line {self.line}, {name}"


@dataclass(frozen=True)
class Skeleton:
    """Two traces of one skeleton compute the same, up to the widths of floats."""

    calls: tuple[SkeletonCall, ...]
    uses: tuple[Chain, ...] = field(compare=False)
    """Every tensor that a call or the result takes, in order."""

    @property
    def outline(self) -> tuple[SkeletonCall, ...]:
        """The calls with any float numbers."""
        return tuple(replace(call, literals=()) for call in self.calls)


def skeleton(graph: Graph) -> Skeleton:
    """The graph's calls, each cast between floats resolved to what is cast."""
    dtypes = all_dtypes(graph)
    chains: dict[str, Chain] = {i.name: ((i.name, i.dtype),) for i in graph.inputs}
    calls = [SkeletonCall("input", (i.name, kind(i.dtype), i.shape.expressions)) for i in graph.inputs]
    numbers = {i.name: number for number, i in enumerate(graph.inputs)}
    uses: list[Chain] = []
    for node in graph.nodes:
        source = node.args[0] if node.args else None
        if isinstance(source, NodeRef) and is_float_cast(node, chains[source.name][-1][1]):
            chains[node.name] = (*chains[source.name], (node.name, node.dtype))
            continue
        arguments = (*node.args, *(node.kwargs[key] for key in sorted(node.kwargs)))
        uses += [chains[name] for name in references(arguments)]
        operands = {name: numbers[chains[name][0][0]] for name in references(arguments)}
        chains[node.name] = ((node.name, dtypes.get(node.name)),)
        numbers[node.name] = len(calls)
        calls.append(_call(node, arguments, operands))
    uses += [chains[o.name] for o in graph.outputs]
    returned = tuple((o.path, numbers[chains[o.name][0][0]]) for o in graph.outputs)
    calls.append(SkeletonCall("return", (graph.result, returned, graph.guards)))
    return Skeleton(tuple(calls), tuple(uses))


def _call(node: Node, arguments: Sequence[NodeArgument], numbers: Mapping[str, int]) -> SkeletonCall:
    plain = (*(_plain(a, numbers) for a in arguments), *sorted(node.kwargs))
    shape = node.shape.expressions if node.shape else None
    return SkeletonCall(
        node.op, plain, tuple(literals(arguments)), kind(node.dtype), shape, node.name, node.line
    )


def kind(dtype: DType | None) -> str | None:
    """What a kernel's code depends on: all floats are one kind, all signed integers another."""
    if dtype in FLOATS:
        return "float"
    return "integer" if dtype in SIGNED else dtype


def is_float_cast(node: Node, source: DType | None) -> bool:
    """Whether the node turns one float dtype into another."""
    return node.op in CASTS and source in FLOATS and node.dtype in FLOATS


def leaves(arguments: Iterable[NodeArgument]) -> Iterator[NodeArgument]:
    """What a call's arguments are made of, in order: lists are taken apart."""
    for argument in arguments:
        yield from leaves(argument.items) if isinstance(argument, ArgumentList) else (argument,)


def with_leaves(argument: NodeArgument, new: Callable[[NodeArgument], NodeArgument]) -> NodeArgument:
    """The argument with others for what it is made of."""
    if isinstance(argument, ArgumentList):
        return ArgumentList(items=tuple(with_leaves(item, new) for item in argument.items))
    return new(argument)


def references(arguments: Sequence[NodeArgument]) -> list[str]:
    """The tensors among a call's arguments, in order."""
    return [leaf.name for leaf in leaves(arguments) if isinstance(leaf, NodeRef)]


def literals(arguments: Sequence[NodeArgument]) -> list[float]:
    """The float numbers among a call's arguments, in order."""
    values = (leaf.value for leaf in leaves(arguments) if isinstance(leaf, Literal_))
    return [value for value in values if isinstance(value, float)]


def _plain(argument: NodeArgument, numbers: Mapping[str, int]) -> object:
    match argument:
        case NodeRef(name=name):
            return ("value", numbers[name])
        case ArgumentList(items=items):
            return tuple(_plain(item, numbers) for item in items)
        case Literal_(value=str() as value) if value in FLOATS:
            return "float"
        case Literal_(value=float()):
            return "number"
    return argument


def first_difference(first: Skeleton, other: Skeleton) -> SkeletonCall:
    """The first call that is not the same in both, out of the longer program."""
    pairs = enumerate(zip(first.calls, other.calls, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(first.calls), len(other.calls)))
    return max(other.calls, first.calls, key=len)[at]


def without_followed_roundings(graph: Graph, skeletons: Sequence[Skeleton]) -> Graph:
    """The graph with casts to a short float taken for exact where that dtype is not the cast's own.

    `skeletons` are those of its traces, its own first. A cast is its own where each trace has a value of that
    dtype there; otherwise it follows an input (`h.to(x.dtype)`), and in the others it would round too much.
    One that ends an operator is torch's, not the caller's.
    """
    uses, *others = (s.uses for s in skeletons)
    followed = {
        name: chain[0][1]
        for chain, *twins in zip(uses, *others, strict=True)
        for name, dtype in chain[1:]
        if dtype in ROUNDED and any(dtype not in {d for _, d in twin} for twin in twins)
    }
    followed |= {node.name: "float32" for node in graph.nodes if node.ends_operator and node.dtype in ROUNDED}
    nodes = tuple(
        node.model_copy(update={"dtype": "float64" if followed[node.name] == "float64" else "float32"})
        if node.name in followed
        else node
        for node in graph.nodes
    )
    return graph.model_copy(update={"nodes": nodes})


def without_exact_casts(graph: Graph) -> Graph:
    """The graph without casts between floats that lose nothing, but for those that are results.

    Casts to float64 stay: what follows is computed in it, not in float32.
    """
    dtypes, returned = all_dtypes(graph), {o.name for o in graph.outputs}
    names = {name: name for name in dtypes}
    kept = []
    for node in graph.nodes:
        source = node.args[0] if node.args else None
        exact = isinstance(source, NodeRef) and is_widening(node, dtypes.get(source.name))
        if isinstance(source, NodeRef) and exact and node.dtype != "float64" and node.name not in returned:
            names[node.name] = names[source.name]
        else:
            kept.append(rename_tensors(node, names))
    return graph.model_copy(update={"nodes": tuple(kept)})


def is_widening(node: Node, source: DType | None) -> bool:
    """Whether the node casts a float to a dtype that holds all its values."""
    if source is None or node.dtype is None or not is_float_cast(node, source):
        return False
    return promoted_dtype(source, node.dtype) == node.dtype


def rename_tensors(node: Node, names: Mapping[str, str]) -> Node:
    """The call of other tensors."""

    def renamed(leaf: NodeArgument) -> NodeArgument:
        return NodeRef(name=names.get(leaf.name, leaf.name)) if isinstance(leaf, NodeRef) else leaf

    args = tuple(with_leaves(a, renamed) for a in node.args)
    kwargs = {key: with_leaves(a, renamed) for key, a in node.kwargs.items()}
    return node.model_copy(update={"args": args, "kwargs": kwargs})


@dataclass(frozen=True)
class TensorDtypes:
    """Dtypes as source, e.g. `x.dtype` or `torch.float32`; equal dtypes have equal source."""

    own: Mapping[str, str]
    """Each tensor's, by the graph's name; what no rule explains is missing."""
    taken: Mapping[str, tuple[str | None, ...]]
    """For each call, those of its tensor operands in order, casts between floats included."""

    def taken_by(self, node: Node) -> list[tuple[str, str | None]]:
        """The call's tensor operands, each with its dtype."""
        names = operands(node)
        return list(zip(names, self.taken.get(node.name, [self.own.get(n) for n in names]), strict=True))


UNKNOWN = TensorDtypes({}, {})


def tensor_dtypes(part: Sequence[Graph], written: str = "{}.dtype") -> TensorDtypes:
    """The dtypes of one program, by rules for all its traces; the names are those of the first.

    `written` is how the source has the dtype of an input.
    """
    inputs = [input_dtypes(t) for t in part]

    @cache
    def source(dtypes: tuple[DType | None, ...]) -> str | None:
        return dtype_source([d for d in dtypes if d], inputs, written) if all(dtypes) else None

    skeletons = [skeleton(t) for t in part]
    every = [all_dtypes(t) for t in part]
    sources: dict[str, str | None] = {n: f"torch.{dtype}" for n, dtype in every[0].items()}
    sources |= {i.name: source(tuple(d[i.name] for d in every)) for i in part[0].inputs}
    uses = iter(zip(*(s.uses for s in skeletons), strict=True))
    nodes = {n.name: n for n in part[0].nodes}
    operand_sources: dict[str, tuple[str | None, ...]] = {}
    for calls in zip(*(s.calls for s in skeletons), strict=True):
        name = calls[0].node
        if name not in nodes:
            continue
        node = nodes[name]
        if node.dtype:
            sources[name] = source(tuple(d.get(c.node) for d, c in zip(every, calls, strict=True)))
        own_uses = islice(uses, len(operands(node)))
        operand_sources[name] = tuple(source(tuple(chain[-1][1] for chain in use)) for use in own_uses)
    return TensorDtypes({n: text for n, text in sources.items() if text}, operand_sources)


def operands(node: Node) -> list[str]:
    """The tensors that a call takes, in the skeleton's order."""
    return references((*node.args, *(node.kwargs[key] for key in sorted(node.kwargs))))
