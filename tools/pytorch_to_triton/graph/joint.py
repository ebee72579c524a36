"""A joint graph in its halves: the function with what it saves, and its gradients computed from that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count

from pytorch_to_triton.graph.skeleton import CASTS, TensorDtypes, operands, rename_tensors
from pytorch_to_triton.schema.graph import Graph, GraphOutput, Node, NodeArgument, TensorInput

REORDERED = ("aten.alias.default", "aten.detach.default", "aten.permute.default", "aten.t.default")


@dataclass(frozen=True)
class Backward:
    """The gradients of a target's results, as a program of their own."""

    graph: Graph
    """It takes what is saved and the gradients of results; its outputs are gradients of inputs."""
    saved: tuple[str, ...]
    """Those of its inputs that the forward half has under the same names: inputs and nodes."""
    cotangents: Mapping[str, str]
    """Its inputs that are gradients of results -> the result's path."""
    gradients: Mapping[str, str]
    """Inputs of the target -> the path of their gradient among its outputs."""
    output_dtypes: Mapping[str, str]
    """As source over `x_dtype`, the dtype of the target's input x."""
    tensor_dtypes: TensorDtypes


def forward_half(joint: Graph) -> Graph:
    """The function itself."""
    assert joint.joint is not None
    gradients = joint.joint.gradients.values()
    outputs = tuple(o for o in joint.outputs if o.path not in gradients)
    saved = {name for name in joint.joint.saved if name not in {i.name for i in joint.inputs}}
    return joint.model_copy(
        update={
            "inputs": tuple(i for i in joint.inputs if i.name not in joint.joint.cotangents),
            "nodes": nodes_between(joint, {o.name for o in outputs} | saved, ()),
            "outputs": outputs,
            "joint": None,
        }
    )


def backward_half(joint: Graph) -> Graph:
    """The gradients. Its inputs are what is saved, as far as it is read, and the gradients of results.

    A gradient is named after its input.
    """
    assert joint.joint is not None
    paths = {path: name for name, path in joint.joint.gradients.items()}
    outputs = tuple(o for o in joint.outputs if o.path in paths)
    nodes = nodes_between(joint, {o.name for o in outputs}, joint.joint.saved)
    computed = {n.name for n in nodes}
    read = {name for n in nodes for name in operands(n)} | {o.name for o in outputs}
    names = {computed_node(nodes, o.name): f"grad_{paths[o.path]}" for o in reversed(outputs)}
    return joint.model_copy(
        update={
            "inputs": tuple(i for i in tensors(joint) if i.name in read - computed),
            "nodes": tuple(
                n.model_copy(update={"source_name": names.get(n.name, n.source_name)}) for n in nodes
            ),
            "outputs": outputs,
            "choices": (),
            "joint": None,
        }
    )


def with_shared_gradients(backward: Graph, dtypes: Mapping[str, str]) -> Graph:
    """Gradients that are casts of one value to one dtype as one tensor, which autograd takes for several.

    `dtypes` are those of the results, by path, as source.
    """
    casts = {n.name: n for n in backward.nodes if n.op in CASTS}
    first: dict[tuple[NodeArgument, str], str] = {}
    outputs = []
    for output in backward.outputs:
        name = output.name
        if cast := casts.get(name):
            name = first.setdefault((cast.args[0], dtypes[output.path]), name)
        outputs.append(output.model_copy(update={"name": name}))
    nodes = nodes_between(backward, {o.name for o in outputs}, ())
    return backward.model_copy(update={"outputs": tuple(outputs), "nodes": nodes})


def gradients_alone(joint: Graph) -> Graph:
    """The gradients as they follow from the inputs, with nothing saved."""
    assert joint.joint is not None
    paths = joint.joint.gradients.values()
    return joint.model_copy(update={"outputs": tuple(o for o in joint.outputs if o.path in paths)})


def computed_node(nodes: Iterable[Node], name: str) -> str:
    """The node that is computed where this one only has another order of dimensions."""
    by_name = {n.name: n for n in nodes}
    while name in by_name and by_name[name].op in REORDERED:
        name = operands(by_name[name])[0]
    return name


def tensors(graph: Graph) -> Iterable[TensorInput]:
    """All single tensors of the graph as inputs: its own, what its nodes compute, gradients of results."""
    cotangents = graph.joint.cotangents if graph.joint else {}
    yield from (i for i in graph.inputs if i.name not in cotangents)
    for node in graph.nodes:
        if node.shape is not None and node.dtype is not None:
            yield TensorInput(name=node.name, shape=node.shape, dtype=node.dtype)
    yield from (i for i in graph.inputs if i.name in cotangents)


def nodes_between(graph: Graph, results: Collection[str], sources: Collection[str]) -> tuple[Node, ...]:
    """The nodes that compute `results` from `sources`."""
    needed = set(results) - set(sources)
    nodes = []
    for node in reversed(graph.nodes):
        if node.name in needed:
            nodes.append(node)
            needed |= {name for name in operands(node) if name not in sources}
    return tuple(reversed(nodes))


def with_names(backward: Backward, names: Mapping[str, str]) -> Backward:
    """The same with other names for what is saved; what has one of these already gets a new one."""
    graph, dtypes = backward.graph, backward.tensor_dtypes
    names = {**names, **replacement_names(graph, names)}
    return Backward(
        graph.model_copy(
            update={
                "inputs": tuple(
                    i.model_copy(update={"name": names.get(i.name, i.name)}) for i in graph.inputs
                ),
                "nodes": tuple(
                    rename_tensors(n, names).model_copy(update={"name": names.get(n.name, n.name)})
                    for n in graph.nodes
                ),
                "outputs": tuple(
                    GraphOutput(path=o.path, name=names.get(o.name, o.name)) for o in graph.outputs
                ),
            }
        ),
        tuple(names.get(name, name) for name in backward.saved),
        {names.get(name, name): path for name, path in backward.cotangents.items()},
        backward.gradients,
        backward.output_dtypes,
        TensorDtypes({names.get(n, n): text for n, text in dtypes.own.items()}, dtypes.taken),
    )


def replacement_names(graph: Graph, names: Mapping[str, str]) -> dict[str, str]:
    """New names for inputs and nodes that have a name which another one gets."""
    present = {*(i.name for i in graph.inputs), *(n.name for n in graph.nodes)}
    reserved, new_names = present | set(names.values()), {}
    for name in sorted(present & set(names.values()) - set(names)):
        new_names[name] = next(new for k in count(1) if (new := f"{name}_{k}") not in reserved)
        reserved.add(new_names[name])
    return new_names
