"""An exported program with its gradients: the joint graph of forward and backward, as AOTAutograd has it."""

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._functorch.aot_autograd import aot_export_joint_simple
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree

from ..calls.gradients import GRADIENT_OF, differentiated
from ..replacement import replaced
from .graph_writer import Extent, MutatesArguments, NodeWriter, NotRepresentable
from .row_statistics import by_statistics

UNSUPPORTED = {
    "outputs that alias inputs": NotRepresentable("a result is an input; only new tensors have a backward"),
    "input mutations": MutatesArguments("it writes to its arguments, which has no backward here"),
    "received a mutation": MutatesArguments("it writes to its arguments, which has no backward here"),
}
"""What AOTAutograd says -> what it means."""
CHECK = torch.ops.aten._assert_tensor_metadata.default


def joint(
    program: ExportedProgram,
    table: Mapping[Any, Callable[..., Any]],
    extent: Extent,
    call: Callable[..., Any] | None = None,
) -> ExportedProgram:
    """The program in the operators that `table` leaves, followed by its gradients; `extent` says which rows
    are long.

    Where a `call` of its inputs is given, that is what is differentiated: torch.export leaves out backward
    passes of the target's own. Its last inputs are the gradients of those results that have one, each with
    the result's place as its target; its last outputs, of a kind of their own, those of all floating-point
    inputs that have one.
    Raises whatever torch raises where it cannot be differentiated.
    """
    given = {n.name: n.meta["val"].detach() for n in program.graph.nodes if n.op == "placeholder"}
    variables = {n: given[n] for n in program.graph_signature.user_inputs if given[n].is_floating_point()}
    users = [s.kind is InputKind.USER_INPUT for s in program.graph_signature.input_specs]
    interpreter = Interpreter(program.graph_module)
    tracked: list[int] = []

    def results(*tensors: torch.Tensor) -> Any:
        inputs = (t for t, is_given in zip(tensors, users, strict=True) if is_given)
        returned = interpreter.run(*tensors) if call is None else pytree.tree_leaves(call(*inputs))
        found = tuple(map(with_own_memory, returned))
        tracked[:] = [i for i, t in enumerate(found) if isinstance(t, torch.Tensor) and t.requires_grad]
        return found

    def exported() -> Any:
        return aot_export_joint_simple(
            results,
            tuple(given.values()),
            trace_joint=True,
            decompositions={**table, **by_statistics(extent)},
        )

    # Fused attention is another operator on each device.
    with preserve_node_meta(), sdpa_kernel(SDPBackend.MATH), in_own_words():
        _, module = differentiated(exported, variables)
    assert isinstance(module, GraphModule)
    for node in module.graph.find_nodes(op="call_function", target=CHECK):
        module.graph.erase_node(node)  # It would count as a reader that nothing can be fused into.
    return program._update(module, signature(module, program, tracked))


def with_own_memory(result: Any) -> Any:
    """A result that is no view: AOTAutograd, and a Function of ours, return new tensors only."""
    if isinstance(result, torch.Tensor) and result._is_view():
        return torch.ops.aten._unsafe_view.default(result, result.shape)
    return result


class OwnBackward(NotRepresentable):
    """The target uses a torch.autograd.Function whose backward cannot be traced."""


@contextlib.contextmanager
def own_backwards(file: Path) -> Iterator[list[str]]:
    """The torch.autograd.Functions of somebody's own that are applied inside, each with its line."""
    usual = torch.autograd.Function.__dict__["apply"]
    applied: list[str] = []

    def apply(cls: Any, *given: Any, **more: Any) -> Any:
        if not cls.__module__.startswith("torch."):
            caller = sys._getframe(1)
            line = f" (line {caller.f_lineno})" if caller.f_code.co_filename == str(file) else ""
            applied.append(f"{cls.__name__}{line}")
        return usual.__get__(None, cls)(*given, **more)

    with replaced(torch.autograd.Function, "apply", classmethod(apply)):
        yield applied


@contextlib.contextmanager
def in_own_words() -> Iterator[None]:
    """What AOTAutograd does not support, as a sentence about the target."""
    try:
        yield
    except RuntimeError as problem:
        why = next((own for said, own in UNSUPPORTED.items() if said in str(problem)), None)
        if why is None:
            raise
        raise why from problem


def signature(module: GraphModule, program: ExportedProgram, tracked: list[int]) -> ExportGraphSignature:
    """What the joint graph's inputs and outputs are; `tracked` are the places of results with a gradient."""
    before = program.graph_signature
    places = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    named = zip(before.input_specs, places, strict=False)
    inputs = [InputSpec(s.kind, TensorArgument(name), s.target, s.persistent) for s, name in named]
    inputs += [
        InputSpec(InputKind.USER_INPUT, TensorArgument(name), str(result))
        for name, result in zip(places[len(inputs) :], tracked, strict=True)
    ]
    (output,) = (n for n in module.graph.nodes if n.op == "output")
    found = list(output.args[0])
    output.args = ([node for node in found if node is not None],)
    results = found[: len(before.output_specs)]
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(n.name), None) for n in results]
    outputs += [
        OutputSpec(OutputKind.GRADIENT_TO_USER_INPUT, TensorArgument(gradient.name), name)
        for name, gradient in zip(places, found[len(results) :], strict=False)
        if gradient is not None
    ]
    return ExportGraphSignature(inputs, outputs)


def cotangents(program: ExportedProgram) -> dict[str, int]:
    """The inputs that are gradients of results, each with the result's place."""
    specs = program.graph_signature.input_specs
    return {s.arg.name: int(s.target) for s in specs if s.kind is InputKind.USER_INPUT and s.target}


def gradients(program: ExportedProgram) -> dict[str, str]:
    """The inputs that have a gradient, each with the node that is it."""
    specs = program.graph_signature.output_specs
    return {s.target: s.arg.name for s in specs if s.kind is OutputKind.GRADIENT_TO_USER_INPUT and s.target}


def grad_names(program: ExportedProgram, taken: Collection[str]) -> dict[str, str]:
    """A name for each input that is a gradient of a result."""
    found = cotangents(program)
    names = {place: "grad_out" if len(found) == 1 else f"grad_out_{n}" for n, place in enumerate(found)}
    return {place: name if name not in taken else f"{name}_" for place, name in names.items()}


def halves(
    program: ExportedProgram, saved: Sequence[str], writer: NodeWriter, graph: Mapping[str, Any]
) -> dict[str, Any]:
    """What the JSON of a joint graph has beside the function's own `graph`."""
    nodes = {node.name: node for node in program.graph.nodes}
    starts, found = cotangents(program), gradients(program)
    given = ((name, nodes[name].meta["val"]) for name in starts)
    inputs = [
        {
            "name": writer.known[name],
            "shape": writer.sizes.shape(t),
            "dtype": str(t.dtype).removeprefix("torch."),
        }
        for name, t in given
    ]
    outputs = [
        {"path": f"{GRADIENT_OF}{writer.known[i]}", "name": known(writer, nodes[n])} for i, n in found.items()
    ]
    return {
        "inputs": [*graph["inputs"], *inputs],
        "outputs": [*graph["outputs"], *outputs],
        "joint": {
            "cotangents": {
                writer.known[name]: graph["outputs"][place]["path"] for name, place in starts.items()
            },
            "gradients": {writer.known[name]: f"{GRADIENT_OF}{writer.known[name]}" for name in found},
            "saved": [writer.known[name] for name in saved if name in writer.known],
        },
    }


def known(writer: NodeWriter, node: Node) -> str:
    """The graph's name of a gradient. Raises NotRepresentable where it is a constant."""
    reference = writer.argument(node)
    if reference["form"] != "node":
        raise NotRepresentable(f"a gradient is a constant{writer.where(node)}")
    return str(reference["name"])


def without_lines(program: ExportedProgram) -> None:
    """Let only what a result is computed from have a line of the caller's source: gradients have no name."""
    specs = program.graph_signature.output_specs
    early = {s.arg.name for s in specs if s.kind is OutputKind.USER_OUTPUT}
    for node in reversed(program.graph.nodes):
        if node.name in early:
            early |= {n.name for n in node.all_input_nodes}
        else:
            node.meta.pop("stack_trace", None)
