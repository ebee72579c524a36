"""A draft that validation refuses: the operators behind its wrong results stay calls of PyTorch instead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pytorch_to_triton.schema.conversion import StageReport
from pytorch_to_triton.schema.graph import ArgumentList, Graph, Node, NodeArgument, NodeRef
from pytorch_to_triton.validate.conclusion import wrong_of

RADII = (0, 2, 6)
"""How many operators before a wrong result are left with it, in one attempt after the other."""


def blamed(graph: Graph, reports: Sequence[StageReport], radius: int) -> dict[str, str]:
    """The nodes up to `radius` operators before the results that the last stage has wrong, with the reason.

    Empty where all stages passed, or none is known to give a wrong number.
    """
    outputs = {o.path: o.name for o in graph.outputs}
    return {
        node: reason
        for path, reason in defects(reports).items()
        for node in _before(graph, outputs.get(path, ""), radius)
    }


def defects(reports: Sequence[StageReport]) -> dict[str, str]:
    """The results that the last stage has wrong, each with what is said of it: the end of a sentence."""
    last = reports[-1]
    cases = [] if last.passed else wrong_of(last.verdict.cases)
    return {
        mismatch.output: (
            f"a defect of pytorch-to-triton, please report it (a kernel of stage {last.stage} was wrong, "
            f"for example at {case.name})"
        )
        for case in cases
        for mismatch in case.mismatches
    }


def _before(graph: Graph, name: str, radius: int) -> Collection[str]:
    """The node and those that it is computed from, in so many steps."""
    nodes = {node.name: node for node in graph.nodes}
    found = {name} & nodes.keys()
    for _ in range(radius):
        found |= {n for node in found for n in _read_by(nodes[node]) if n in nodes}
    return found


def _read_by(node: Node) -> Iterator[str]:
    waiting: list[NodeArgument] = [*node.args, *node.kwargs.values()]
    while waiting:
        match waiting.pop():
            case NodeRef(name=name):
                yield name
            case ArgumentList(items=items):
                waiting += items
