"""An exported program with its gradients: the joint graph of forward and backward, as AOTAutograd has it."""

import contextlib
import math
import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch._functorch.aot_autograd import aot_export_joint_simple
from torch._functorch.partitioners import get_default_op_list, min_cut_rematerialization_partition
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

from ..calls.gradients import GRADIENT_OF
from ..replacement import replaced
from .free_sizes import hint_of
from .graph_writer import MutatesArguments, NodeWriter, NotRepresentable

Normalized = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""The result, the mean, and 1 / the deviation."""


def normalized(x: torch.Tensor, dims: list[int], eps: float) -> Normalized:
    """x with mean 0 and variance 1 over dimensions; 16 bits are computed in float32."""
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    mean = wide.mean(dims, keepdim=True)
    centered = wide - mean
    rstd = torch.rsqrt(centered.square().mean(dims, keepdim=True) + eps)
    return centered * rstd, mean, rstd


def affine(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None) -> torch.Tensor:
    """x times the weight plus the bias, where there are any."""
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def layer_norm(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> Normalized:
    """aten.native_layer_norm."""
    out, mean, rstd = normalized(x, list(range(x.dim() - len(shape), x.dim())), eps)
    return affine(out, weight, bias).to(x.dtype), mean, rstd


def group_norm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, *given: Any
) -> Normalized:
    """aten.native_group_norm, whose last arguments are sizes, the number of groups and eps."""
    batch, channels, inner, groups, eps = given
    grouped = x.reshape(batch, groups, channels // groups, inner)
    out, mean, rstd = normalized(grouped, [2, 3], eps)
    along = (channels, *(1,) * (x.dim() - 2))
    of_channels = (None if t is None else t.reshape(along) for t in (weight, bias))
    out = affine(out.reshape(x.shape), *of_channels).to(x.dtype)
    return out, mean.reshape(batch, groups), rstd.reshape(batch, groups)


NORMS: Mapping[Any, Callable[..., Normalized]] = {
    torch.ops.aten.native_layer_norm.default: layer_norm,
    torch.ops.aten.native_group_norm.default: group_norm,
}
"""Norms as statistics and what follows from them by element: a backward pass saves those alone."""


UNSUPPORTED = {
    "outputs that alias inputs": NotRepresentable("a result is an input; only new tensors have a backward"),
    "input mutations": MutatesArguments("it writes to its arguments, which has no backward here"),
    "received a mutation": MutatesArguments("it writes to its arguments, which has no backward here"),
}
"""What AOTAutograd says -> what it means."""
PRODUCTS = frozenset({"addmm", "baddbmm", "bmm", "convolution", "mm"})
"""Operators that need their operands in memory."""
CHECK = torch.ops.aten._assert_tensor_metadata.default
VIEWS = (torch.ops.aten._unsafe_view.default, torch.ops.aten._to_copy.default)
"""Operators whose results hold no more than their operand, beside those that share its memory."""
FROM_NOTHING = (
    torch.ops.aten.arange.start_step,
    torch.ops.aten.full.default,
    torch.ops.aten.tril_indices.default,
    torch.ops.aten.triu_indices.default,
)
"""Operators that read no tensor."""
MOVES = (torch.ops.aten.cat.default, torch.ops.aten.constant_pad_nd.default)
"""Operators whose results hold elements of their operands, and at most constants beside them."""
OF_ROWS = (torch.ops.aten._softmax.default, torch.ops.aten._log_softmax.default)
"""Operators whose statistics take less time to compute again than their results to write and read."""


def joint(
    program: ExportedProgram, table: Mapping[Any, Callable[..., Any]], call: Callable[..., Any] | None = None
) -> ExportedProgram:
    """The program in the operators that `table` leaves, followed by its gradients.

    Where a `call` of its inputs is given, that is what is differentiated: torch.export leaves out backward
    passes of the target's own. Its last inputs are the gradients of those results that have one, each with
    the result's place as its target; its last outputs, of a kind of their own, those of all floating-point
    inputs that have one.
    Raises whatever torch raises where it cannot be differentiated.
    """
    given = [leaf(n, program) for n in program.graph.nodes if n.op == "placeholder"]
    users = [s.kind is InputKind.USER_INPUT for s in program.graph_signature.input_specs]
    interpreter = Interpreter(program.graph_module)
    tracked: list[int] = []

    def results(*tensors: torch.Tensor) -> Any:
        inputs = (t for t, is_given in zip(tensors, users, strict=True) if is_given)
        returned = interpreter.run(*tensors) if call is None else pytree.tree_leaves(call(*inputs))
        found = tuple(map(with_own_memory, returned))
        tracked[:] = [i for i, t in enumerate(found) if isinstance(t, torch.Tensor) and t.requires_grad]
        return found

    # Fused attention is another operator on each device.
    with preserve_node_meta(), sdpa_kernel(SDPBackend.MATH), in_own_words():
        module = aot_export_joint_simple(
            results, tuple(given), trace_joint=True, decompositions={**dict(table.items()), **NORMS}
        )
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


def leaf(placeholder: Node, program: ExportedProgram) -> torch.Tensor:
    """The placeholder's fake tensor; one to differentiate by, if it is a floating-point input."""
    tensor: torch.Tensor = placeholder.meta["val"].detach()
    given = placeholder.name in program.graph_signature.user_inputs
    return tensor.requires_grad_(given and tensor.is_floating_point())


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


def saved_by(program: ExportedProgram) -> list[str]:
    """The nodes whose values the backward pass needs: what the min-cut partitioner chooses, and is worth it.

    It also makes one of equal nodes of the joint graph. In place of a view it is the tensor looked at, which
    is kept in memory as well.
    """
    module = program.graph_module
    results = [s for s in program.graph_signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    called = (n.target for n in module.graph.nodes if isinstance(n.target, torch._ops.OpOverload))
    multiplies = any(op.__name__.partition(".")[0] in PRODUCTS for op in called)
    # It takes views for readers of memory as well, which they are not: without products nothing is.
    with functorch_config.patch(ban_recompute_materialized_backward=multiplies):
        forward, _ = min_cut_rematerialization_partition(module, None, num_fwd_outputs=len(results))
    (output,) = (n for n in forward.graph.nodes if n.op == "output")
    names = [n.name for n in output.args[0][len(results) :]]
    nodes = {n.name: n for n in module.graph.nodes}
    tensors = (nodes[name] for name in names if isinstance(nodes[name].meta.get("val"), torch.Tensor))
    returned = {looked_at(nodes[s.arg.name]) for s in results if s.arg.name in nodes}
    return [n.name for n in worth_saving(list(dict.fromkeys(map(looked_at, tensors))), returned)]


def worth_saving(saved: Sequence[Node], returned: Collection[Node]) -> list[Node]:
    """Those that take fewer bytes than to compute them again, by element or row, from inputs and each other.

    The partitioner weighs all tensors alike; but inputs and results lie in memory anyway, and what else is
    computed has to be written before it is read.
    """
    kept = list(saved)
    # Products, and the like, take their operands from memory.
    is_product = get_default_op_list().is_compute_intensive
    for node in sorted(saved, reverse=True):
        others = [n for n in kept if n is not node]
        found = sources(node, others)
        if found is None or any(map(is_product, readers(node))):
            continue
        more = sum(n_bytes(n) for n in found if n not in kept)
        # What is not returned is written for the backward pass alone, by a kernel.
        if more < n_bytes(node) or (node not in returned and more <= 2 * n_bytes(node)):
            kept = [*others, *(n for n in found if n not in kept)]
    return kept


def sources(node: Node, known: Collection[Node]) -> list[Node] | None:
    """What is known, and inputs, that the node follows from by element or row; None where it does not."""
    found: dict[Node, None] = {}
    todo = [node]
    while todo:
        n = todo.pop()
        if n in known or (n.op == "placeholder" and n is not node):
            found[n] = None
        elif is_cheap(call := call_of(n)):
            todo += (i for i in call.all_input_nodes if isinstance(i.meta["val"], torch.Tensor))
        else:
            return None
    return list(found)


def is_cheap(node: Node) -> bool:
    """Whether its elements follow from those at their place or in their row, or from none at all."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    known = torch.Tag.pointwise in target.tags or target.is_view
    return known or target in (*VIEWS, *MOVES, *OF_ROWS, *FROM_NOTHING)


def readers(node: Node) -> Iterator[Node]:
    """What reads the node, itself or through views."""
    for user in node.users:
        target = user.target
        if isinstance(target, torch._ops.OpOverload) and (target.is_view or target in VIEWS):
            yield from readers(user)
        yield user


def n_bytes(node: Node) -> int:
    """The bytes of a tensor at the traced sizes."""
    tensor: torch.Tensor = node.meta["val"]
    return math.prod(map(hint_of, tensor.shape)) * tensor.element_size()


def looked_at(node: Node) -> Node:
    """What a view, or a cast to a wider dtype, shows."""
    while shows(call := call_of(node), node):
        node = call.all_input_nodes[0]
    return node


def call_of(node: Node) -> Node:
    """The call that a result is of: of one among several, the call that has them all."""
    return node.all_input_nodes[0] if node.target is operator.getitem else node


def shows(call: Node, result: Node) -> bool:
    """Whether a result of the call holds no more than the call's first operand."""
    if not isinstance(call.target, torch._ops.OpOverload):
        return False
    if not call.target.is_view and call.target not in VIEWS:
        return False
    wide, narrow = (n.meta["val"].dtype for n in (result, call.all_input_nodes[0]))
    return bool(torch.promote_types(wide, narrow) == wide)


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
