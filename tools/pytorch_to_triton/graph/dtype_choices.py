"""Numbers of a program that follow a dtype, such as an eps: one program, with numbers for `run` to choose."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count

from pytorch_to_triton.graph.dtype_rules import FINFO, DtypeRule, deciding_dtype, input_dtypes
from pytorch_to_triton.graph.skeleton import skeleton, with_leaves
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.graph import (
    DtypeChoice,
    Graph,
    Literal_,
    Node,
    NodeArgument,
    ScalarRef,
)

SMALL = 0.01
"""What is added and lies below is an eps."""
NAMES = {
    "add": "offset",
    "clamp": "bound",
    "clamp_max": "bound",
    "clamp_min": "bound",
    "div": "divisor",
    "masked_fill": "fill",
    "mul": "scale",
    "pow": "exponent",
    "sub": "offset",
    "where": "fill",
}


def choices_of(
    traces: Sequence[Graph],
) -> dict[tuple[str, int], tuple[DtypeRule, Mapping[DType, float]]] | None:
    """Each number that differs among the traces of one outline, by call and place, with what decides it.

    None where a number follows no single dtype, cannot be an argument of a kernel (which is float32), or may
    be an argument of the function already.
    """
    inputs = [input_dtypes(t) for t in traces]
    doubles = any("float64" in dtypes.values() for dtypes in inputs)
    constants = set(traces[0].constants.values())
    choices: dict[tuple[str, int], tuple[DtypeRule, Mapping[DType, float]]] = {}
    for calls in zip(*(skeleton(t).calls for t in traces), strict=True):
        for place, values in enumerate(zip(*(call.literals for call in calls), strict=True)):
            if len(set(values)) == 1:
                continue
            parts = [
                [d for d, v in zip(inputs, values, strict=True) if v == value]
                for value in dict.fromkeys(values)
            ]
            chosen = deciding_dtype(parts)
            if (
                chosen is None
                or constants & set(values)
                or doubles
                or max(map(abs, values)) > FINFO["max"]["float32"]
            ):
                return None
            pairs = zip(chosen[1], dict.fromkeys(values), strict=True)
            choices[calls[0].node, place] = chosen[0], {d: value for dtypes, value in pairs for d in dtypes}
    return choices


def with_choices(graph: Graph, traces: Sequence[Graph]) -> Graph:
    """The graph with a name for each number that differs among its traces."""
    numbers = choices_of(traces)
    assert numbers is not None
    nodes = {n.name: n for n in graph.nodes}
    reserved = {*graph.parameters, *graph.dims, *(n.source_name for n in graph.nodes), *(nodes)}
    choices: list[DtypeChoice] = []
    places: dict[tuple[str, int], str] = {}
    for (node, place), (rule, values) in numbers.items():
        same = [c for c in choices if c.tensors == rule.names and c.values == values]
        if not same:
            name = _name(nodes[node], values.values(), {*reserved, *(c.name for c in choices)})
            same = [DtypeChoice(name=name, tensors=rule.names, values=dict(values))]
            choices += same
        places[node, place] = same[0].name
    constants = {**graph.constants, **{c.name: next(iter(c.values.values())) for c in choices}}
    renewed = tuple(
        _refer_to_names(n, places) if n.name in {p for p, _ in places} else n for n in graph.nodes
    )
    return graph.model_copy(update={"nodes": renewed, "choices": tuple(choices), "constants": constants})


def _name(node: Node, values: Collection[float], reserved: Collection[str | None]) -> str:
    operator = node.op.split(".")[1] if "." in node.op else node.op
    preferred = (
        "eps" if operator == "add" and max(map(abs, values)) <= SMALL else NAMES.get(operator, "number")
    )
    name, n = preferred, 1
    while name in reserved:
        n += 1
        name = f"{preferred}_{n}"
    return name


def _refer_to_names(node: Node, places: Mapping[tuple[str, int], str]) -> Node:
    """The node with the named numbers by their names; places count on from arguments to sorted keywords."""
    numbers = count()

    def named(leaf: NodeArgument) -> NodeArgument:
        match leaf:
            case Literal_(value=float()) | ScalarRef():
                name = places.get((node.name, next(numbers)))
                return ScalarRef(name=name) if name else leaf
        return leaf

    args = tuple(with_leaves(a, named) for a in node.args)
    kwargs = {key: with_leaves(node.kwargs[key], named) for key in sorted(node.kwargs)}
    return node.model_copy(update={"args": args, "kwargs": kwargs})
