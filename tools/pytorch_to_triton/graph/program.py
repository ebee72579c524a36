"""The traced graph in the drafter's own words: computing steps only, views resolved, arguments in place."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pytorch_to_triton.errors import NotConvertible
from pytorch_to_triton.graph.operators import DEFAULTS, NORMALISATIONS, POINTWISE, REDUCTIONS
from pytorch_to_triton.graph.views import VIEWS, View, split_parts, through, whole
from pytorch_to_triton.schema.graph import (
    ArgumentList,
    Graph,
    Literal_,
    Node,
    NodeArgument,
    NodeRef,
    NonFinite,
    Output,
    ScalarRef,
    Shape,
    SizeRef,
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

    Raises NotConvertible for an operator that nothing knows.
    """
    names = _names(graph, reserved)
    views: dict[str, View] = {i.name: whole(i.name, i.shape) for i in graph.inputs}
    parts: dict[str, tuple[View, ...]] = {}
    dtypes: dict[str, str] = {i.name: i.dtype for i in graph.inputs}
    steps: list[Step] = []
    for node in graph.nodes:
        if node.op == "getitem":
            _take_item(node, parts, views)
        elif node.op == "aten.split_with_sizes.default":
            parts[node.name] = split_parts(node, _source(node.args[0], views))
        elif node.op in VIEWS:
            view = through(node, _source(node.args[0], views))
            views[node.name] = replace(view, label=node.source_name or view.label)
        else:
            step = replace(_step(node, views, dtypes), name=names[node.name])
            steps.append(step)
            dtypes[step.name] = step.dtype
            views[node.name] = whole(step.name, step.shape)
            parts[node.name] = (views[node.name],)
    results = tuple(_result(o, views) for o in graph.outputs)
    return Program(graph, _live(tuple(steps), results), results)


def _names(graph: Graph, reserved: frozenset[str]) -> dict[str, str]:
    """A readable, unique name for every computing node: the caller's variable, `out`, or a word for it."""
    taken = set(reserved) | set(graph.parameters) | set(graph.dims) | {i.name for i in graph.inputs}
    returned = {o.name for o in graph.outputs}
    names = {}
    for node in graph.nodes:
        if node.op in VIEWS or node.op in ("getitem", "aten.split_with_sizes.default"):
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
        raise NotConvertible(
            "A tensor is made of a number inside the function.",
            "Use the Python number itself, or pass the tensor as an argument.",
        )
    return views[argument.name]


def _result(output: Output, views: Mapping[str, View]) -> Result:
    return Result(output.path, views[output.name])


def _live(steps: tuple[Step, ...], results: tuple[Result, ...]) -> tuple[Step, ...]:
    """The steps that a result depends on."""
    needed = {r.view.source for r in results}
    live = []
    for step in reversed(steps):
        if step.name in needed:
            live.append(step)
            needed |= {v.source for v in step.views}
    return tuple(reversed(live))


def _take_item(node: Node, parts: Mapping[str, tuple[View, ...]], views: dict[str, View]) -> None:
    source, index = node.args
    assert isinstance(source, NodeRef)
    assert isinstance(index, Literal_)
    items = parts[source.name]
    if not isinstance(index.value, int) or index.value >= len(items):
        raise NotConvertible(
            f"Line {node.line}: the indices of a maximum or minimum are used; only values can be drafted.",
            "Compute the indices apart, or write that kernel by hand and validate it.",
        )
    views[node.name] = replace(items[index.value], label=node.source_name)


def _step(node: Node, views: Mapping[str, View], dtypes: Mapping[str, str]) -> Step:
    if node.op in REDUCTIONS:
        return _reduction(node, views, dtypes)
    if node.op in NORMALISATIONS:
        return _normalisation(node, views)
    if node.op in POINTWISE:
        return _pointwise(node, views)
    raise NotConvertible(
        f"Line {node.line}: no pattern drafts {node.op}.",
        "Keep that operator outside of the function to convert, or write the kernel by hand and validate it.",
    )


def _operand(argument: NodeArgument, views: Mapping[str, View]) -> Operand:
    match argument:
        case NodeRef(name=name):
            return views[name]
        case ArgumentList():
            raise NotConvertible("A list of tensors meets an operator.", "Pass the tensors one by one.")
    return argument


def _positional(node: Node) -> tuple[NodeArgument, ...]:
    """The arguments of a pointwise operator in their places, defaults filled in."""
    defaults = DEFAULTS.get(node.op, {})
    rest = list(defaults.items())[max(len(node.args) - 1, 0) :]
    return (*node.args, *(node.kwargs.get(name, Literal_(value=value)) for name, value in rest))


def _pointwise(node: Node, views: Mapping[str, View]) -> Step:
    assert node.shape is not None
    assert node.dtype is not None
    operands = tuple(_operand(a, views) for a in _positional(node))
    return Step(
        node.name, POINTWISE[node.op], node.op, operands, node.shape, node.dtype,
        options=node.kwargs, source_name=node.source_name, line=node.line,
    )  # fmt: skip


def _dims(argument: NodeArgument | None, rank: int) -> tuple[int, ...]:
    """Dimensions to reduce, counted from the front; none given means all."""
    items = argument.items if isinstance(argument, ArgumentList) else (argument,)
    given = [a.value for a in items if isinstance(a, Literal_) and isinstance(a.value, int)]
    return tuple(sorted(d % rank for d in given)) or tuple(range(rank))


def _reduction(node: Node, views: Mapping[str, View], dtypes: Mapping[str, str]) -> Step:
    spec = REDUCTIONS[node.op]
    view = _source(node.args[0], views)
    given = dict(enumerate(node.args))
    dims = _dims(given.get(spec.dims) if spec.dims else None, len(view))
    keep = given.get(spec.keepdim) if spec.keepdim else node.kwargs.get("keepdim")
    keepdim = isinstance(keep, Literal_) and keep.value is True
    if len(view) == 0:
        raise NotConvertible(f"Line {node.line}: {node.op} of a single number.", "Leave it out.")
    dtype = node.dtype or dtypes[view.source]
    shape = node.shape or _reduced_shape(view, dims, keepdim=keepdim)
    return Step(
        node.name, spec.kind, node.op, (view,), shape, dtype, dims, keepdim,
        options=node.kwargs, source_name=node.source_name, line=node.line,
    )  # fmt: skip


def _reduced_shape(view: View, dims: tuple[int, ...], *, keepdim: bool) -> Shape:
    sizes = [("1", 1) if i in dims else (str(d.size), d.traced) for i, d in enumerate(view.dims)]
    kept = [s for i, s in enumerate(sizes) if keepdim or i not in dims]
    return Shape(expressions=tuple(e for e, _ in kept), traced=tuple(n for _, n in kept))


def _normalisation(node: Node, views: Mapping[str, View]) -> Step:
    assert node.shape is not None
    assert node.dtype is not None
    kind = NORMALISATIONS[node.op]
    rank = len(node.shape)
    if kind in ("softmax", "log_softmax"):
        dims = _dims(node.args[1], rank)
        operands: tuple[Operand, ...] = (_source(node.args[0], views),)
    else:
        normalised = node.args[1]
        assert isinstance(normalised, ArgumentList)
        dims = tuple(range(rank - len(normalised.items), rank))
        operands = (_source(node.args[0], views), *(_operand(a, views) for a in node.args[2:5]))
    return Step(
        node.name, kind, node.op, operands, node.shape, node.dtype, dims,
        options=node.kwargs, source_name=node.source_name, line=node.line,
    )  # fmt: skip
