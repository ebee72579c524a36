"""The traced graph in the drafter's own words: computing steps only, views resolved, arguments in place."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.call_arguments import bound
from pytorch_to_triton.graph.obstacles import Obstacle, obstacle_of
from pytorch_to_triton.graph.operators import NORMALISATIONS, POINTWISE, REDUCTIONS
from pytorch_to_triton.graph.views import SPLIT, VIEWS, View, split_parts, through, whole
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
    TensorInput,
)

WORDS = {"abs": "magnitude", "max": "largest", "min": "smallest", "pow": "power", "sum": "total"}
"""Names for values whose operator's own name is a Python builtin."""

Operand = View | Literal_ | NonFinite | ScalarRef | SizeRef


@dataclass(frozen=True)
class Step:
    """One computing step. `kind` is the drafter's word for the operator: `add`, `softmax`, `sum`, ..."""

    name: str
    kind: str
    op: str
    operands: tuple[Operand, ...]
    shape: Shape
    dtype: str
    reduced: tuple[int, ...] = ()
    """Dimensions of the first operand that are reduced; empty for pointwise steps."""
    keepdim: bool = True
    options: Mapping[str, NodeArgument] = field(default_factory=dict)
    """Arguments that change what the step computes, by name."""
    source_name: str | None = None
    line: int | None = None

    @property
    def is_pointwise(self) -> bool:
        return not self.reduced

    @property
    def views(self) -> tuple[View, ...]:
        """The operands that are tensors."""
        return tuple(o for o in self.operands if isinstance(o, View))


@dataclass(frozen=True)
class Result:
    """One tensor that the function returns."""

    path: str
    view: View


@dataclass(frozen=True)
class Program:
    """Steps in order of computation over the graph's inputs."""

    graph: Graph
    steps: tuple[Step, ...]
    results: tuple[Result, ...]
    obstacles: tuple[Obstacle, ...] = ()
    """Calls that cannot be drafted; the steps take their values for inputs."""

    @property
    def names(self) -> frozenset[str]:
        """What `run` and its tensors are called: parameters, inputs and steps."""
        given = (*self.graph.parameters, *(i.name for i in self.graph.inputs))
        return frozenset((*given, *(s.name for s in self.steps)))

    def step(self, name: str) -> Step | None:
        """The step of that name, or None if the name is an input's."""
        return next((s for s in self.steps if s.name == name), None)

    def shape(self, name: str) -> Shape:
        """The shape of an input or a step."""
        found = self.step(name) or next(i for i in self.graph.inputs if i.name == name)
        return found.shape

    def dtype(self, name: str) -> str:
        """The dtype of an input or a step, as traced."""
        found = self.step(name) or next(i for i in self.graph.inputs if i.name == name)
        return found.dtype


def program(graph: Graph, reserved: frozenset[str] = frozenset()) -> Program:
    """Resolve views and name every step after the caller's variables, never with a `reserved` name.

    A call that cannot be drafted becomes an obstacle, and its value is taken for an input, so that the rest
    is looked at too.
    """
    reading = _Reading(graph, _names(graph, reserved))
    for node in graph.nodes:
        try:
            reading.take(node)
        except NotConvertible as refused:
            reading.give_up(node, Obstacle(node.op, node.line, refused.message, refused.hint))
    results = tuple(Result(o.path, reading.views[o.name]) for o in graph.outputs)
    known = graph.model_copy(update={"inputs": (*graph.inputs, *reading.assumed)})
    return Program(known, _live(tuple(reading.steps), results), results, tuple(reading.obstacles))


class _Reading:
    """The way through a graph's nodes."""

    def __init__(self, graph: Graph, names: Mapping[str, str]) -> None:
        self.names = names
        self.views: dict[str, View] = {i.name: whole(i.name, i.shape) for i in graph.inputs}
        self.parts: dict[str, tuple[View, ...]] = {}
        self.dtypes: dict[str, str] = {i.name: i.dtype for i in graph.inputs}
        self.steps: list[Step] = []
        self.assumed: list[TensorInput] = []
        self.obstacles: list[Obstacle] = []

    def take(self, node: Node) -> None:
        """Raises NotConvertible for what cannot be drafted."""
        if node.op == "getitem":
            self._take_item(node)
            return
        first = next((a.name for a in node.args if isinstance(a, NodeRef)), None)
        obstacle = obstacle_of(node, self.dtypes[self.views[first].source] if first in self.views else None)
        if obstacle:
            self.give_up(node, obstacle)
        elif node.op in SPLIT:
            self.parts[node.name] = split_parts(node, _source(node.args[0], self.views))
        elif node.op in VIEWS:
            view = through(node, _source(node.args[0], self.views))
            self.views[node.name] = replace(view, label=node.source_name or view.label)
        else:
            self._add(node, replace(_step(node, self.views, self.dtypes), name=self.names[node.name]))

    def _add(self, node: Node, step: Step) -> None:
        self.steps.append(step)
        self.dtypes[step.name] = step.dtype
        self.views[node.name] = whole(step.name, step.shape)
        self.parts[node.name] = (self.views[node.name],)

    def give_up(self, node: Node, obstacle: Obstacle) -> None:
        """Note what is in the way, and go on as if the value were given."""
        self.obstacles.append(obstacle)
        self._assume(node)

    def _assume(self, node: Node) -> None:
        if node.shape is not None and node.dtype is not None:
            self.assumed.append(TensorInput(name=node.name, shape=node.shape, dtype=node.dtype))
            self.views[node.name] = whole(node.name, node.shape)
            self.dtypes[node.name] = node.dtype

    def _take_item(self, node: Node) -> None:
        source, index = node.args
        assert isinstance(source, NodeRef)
        assert isinstance(index, Literal_)
        items = self.parts.get(source.name)
        if items is None:
            self._assume(node)
        elif not isinstance(index.value, int) or index.value >= len(items):
            raise NotConvertible(
                "the indices of a maximum or minimum are used; only values can be drafted",
                "Compute the indices apart, or write that kernel by hand and validate it.",
            )
        else:
            self.views[node.name] = replace(items[index.value], label=node.source_name)


def _names(graph: Graph, reserved: frozenset[str]) -> dict[str, str]:
    """A readable, unique name for every computing node: the caller's variable, `out`, or a word for it."""
    taken = set(reserved) | set(graph.parameters) | set(graph.dims) | {i.name for i in graph.inputs}
    returned = {o.name for o in graph.outputs}
    names = {}
    for node in graph.nodes:
        if node.op in VIEWS or node.op in SPLIT or node.op == "getitem":
            continue
        operator = node.op.split(".")[1].strip("_")
        word = "out" if node.name in returned else WORDS.get(operator, operator)
        wanted = node.source_name or word
        name, n = wanted, 1
        while name in taken or keyword.iskeyword(name):
            n += 1
            name = f"{wanted}_{n}"
        taken.add(name)
        names[node.name] = name
    return names


def _source(argument: NodeArgument, views: Mapping[str, View]) -> View:
    if not isinstance(argument, NodeRef):
        raise NotConvertible("it takes a constant, not a tensor", "Give it a tensor, or work it out by hand.")
    return views[argument.name]


def _live(steps: tuple[Step, ...], results: tuple[Result, ...]) -> tuple[Step, ...]:
    """The steps that a result depends on."""
    needed = {r.view.source for r in results}
    live = []
    for step in reversed(steps):
        if step.name in needed:
            live.append(step)
            needed |= {v.source for v in step.views}
    return tuple(reversed(live))


def _step(node: Node, views: Mapping[str, View], dtypes: Mapping[str, str]) -> Step:
    if node.op in REDUCTIONS:
        return _reduction(node, views, dtypes)
    if node.op in NORMALISATIONS:
        return _normalisation(node, views)
    return _pointwise(node, views)


def _operand(argument: NodeArgument, views: Mapping[str, View]) -> Operand:
    match argument:
        case NodeRef(name=name):
            return views[name]
        case ArgumentList():
            raise NotConvertible("it takes a list of tensors", "Pass the tensors one by one.")
    return argument


def _pointwise(node: Node, views: Mapping[str, View]) -> Step:
    assert node.shape is not None
    assert node.dtype is not None
    given = bound(node)
    operands = tuple(_operand(a, views) for a in given.operands)
    return Step(
        node.name, POINTWISE[node.op], node.op, operands, node.shape, node.dtype,
        options=given.options, source_name=node.source_name, line=node.line,
    )  # fmt: skip


def _dims(argument: NodeArgument | None, rank: int) -> tuple[int, ...]:
    """Dimensions to reduce, counted from the front; none given means all."""
    items = argument.items if isinstance(argument, ArgumentList) else (argument,)
    given = [a.value for a in items if isinstance(a, Literal_) and isinstance(a.value, int)]
    return tuple(sorted(d % rank for d in given)) or tuple(range(rank))


def _reduction(node: Node, views: Mapping[str, View], dtypes: Mapping[str, str]) -> Step:
    view = _source(node.args[0], views)
    options = bound(node).options
    if len(view) == 0:
        raise NotConvertible("it reduces a single number", "Leave it out.")
    dims = _dims(options.get("dim"), len(view))
    keepdim = options.get("keepdim") == Literal_(value=True)
    dtype = node.dtype or dtypes[view.source]
    shape = node.shape or _reduced_shape(view, dims, keepdim=keepdim)
    return Step(
        node.name, REDUCTIONS[node.op], node.op, (view,), shape, dtype, dims, keepdim,
        options=options, source_name=node.source_name, line=node.line,
    )  # fmt: skip


def _reduced_shape(view: View, dims: tuple[int, ...], *, keepdim: bool) -> Shape:
    sizes = [("1", 1) if i in dims else (str(d.size), d.traced) for i, d in enumerate(view.dims)]
    kept = [s for i, s in enumerate(sizes) if keepdim or i not in dims]
    return Shape(expressions=tuple(e for e, _ in kept), traced=tuple(n for _, n in kept))


def _normalisation(node: Node, views: Mapping[str, View]) -> Step:
    assert node.shape is not None
    assert node.dtype is not None
    given = bound(node)
    rank = len(node.shape)
    if "dim" in given.options:
        dims = _dims(given.options["dim"], rank)
        operands: tuple[Operand, ...] = (_source(node.args[0], views),)
    else:
        x, normalised, *others = given.operands
        assert isinstance(normalised, ArgumentList)
        dims = tuple(range(rank - len(normalised.items), rank))
        operands = (_source(x, views), *(_operand(a, views) for a in others))
    return Step(
        node.name, NORMALISATIONS[node.op], node.op, operands, node.shape, node.dtype, dims,
        options=given.options, source_name=node.source_name, line=node.line,
    )  # fmt: skip
