"""Results that need memory of their own."""

from __future__ import annotations

from dataclasses import replace

from pytorch_to_triton.draft.lower.tensor import loaded
from pytorch_to_triton.draft.program import ConvolutionCall, Program, Step, buffers_of, is_plain
from pytorch_to_triton.schema.graph import NodeRef


def with_results_stored(program: Program) -> Program:
    """Results that look at a step in another order, or are copies, are steps of their own, stored as read."""
    items, tensors, names = list(program.items), dict(program.tensors), dict(program.names)
    needed = {r for c in program.calls for r in c.reads}
    needed |= {b for r in program.results if is_plain(r.tensor) for b in buffers_of(r.tensor)}
    ordered = {n for c in program.calls if isinstance(c, ConvolutionCall) and c.order for n in c.names}
    results = []
    for result in program.results:
        base = buffers_of(result.tensor)[0] if buffers_of(result.tensor) else ""
        moved = base in program.steps and base not in needed and not is_plain(result.tensor)
        moved |= base in ordered
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
