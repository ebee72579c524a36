"""What a forward pass saves for the backward pass."""

import math
import operator
from collections.abc import Collection, Iterator, Sequence

import torch
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import get_default_op_list, min_cut_rematerialization_partition
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import Node

from .graph_writer import Extent

PRODUCTS = frozenset({"addmm", "baddbmm", "bmm", "convolution", "mm"})
"""Operators that need their operands in memory."""
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

FEWER = 16
"""How many times fewer bytes than what follows from it a statistic takes, to be saved in its place."""


def saved_by(program: ExportedProgram, extent: Extent) -> list[str]:
    """The nodes whose values the backward pass needs: what the min-cut partitioner chooses, and is worth it.
    `extent` gives the sizes at which they are weighed.

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
    return [n.name for n in worth_saving(list(dict.fromkeys(map(looked_at, tensors))), returned, extent)]


def worth_saving(saved: Sequence[Node], returned: Collection[Node], extent: Extent) -> list[Node]:
    """Those that take fewer bytes than to compute them again, by element or row, from inputs and each other.

    The partitioner weighs all tensors alike; but inputs and results lie in memory anyway, and what else is
    computed has to be written before it is read.
    """
    kept = list(saved)
    # Products, and the like, take their operands from memory.
    is_product = get_default_op_list().is_compute_intensive
    for node in sorted(saved, reverse=True):
        others = [n for n in kept if n is not node]
        found = sources(node, others, extent)
        if found is None or any(map(is_product, readers(node))):
            continue
        more = sum(n_bytes(n, extent) for n in found if n not in kept)
        # What is not returned is written for the backward pass alone, by a kernel.
        if more < n_bytes(node, extent) or (node not in returned and more <= 2 * n_bytes(node, extent)):
            kept = [*others, *(n for n in found if n not in kept)]
    return kept


def sources(node: Node, known: Collection[Node], extent: Extent) -> list[Node] | None:
    """What is known, inputs and statistics that the node follows from by element or row; None where it does
    not."""
    found: dict[Node, None] = {}
    todo = [node]
    most = n_bytes(node, extent) / FEWER
    while todo:
        n = todo.pop()
        call = call_of(n)
        is_given = n in known or (n.op == "placeholder" and n is not node)
        if is_given or (n_bytes(n, extent) <= most and not is_cheap(call)):
            found[n] = None
        elif is_cheap(call):
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


def n_bytes(node: Node, extent: Extent) -> int:
    """The bytes of a tensor."""
    tensor: torch.Tensor = node.meta["val"]
    return math.prod(map(extent, tensor.shape)) * tensor.element_size()


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
