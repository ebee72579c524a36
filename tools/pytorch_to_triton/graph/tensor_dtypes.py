"""In which dtype PyTorch has each tensor of a program, and in which each call takes it, over its traces.

A draft computes in float32 whatever the dtype; what it keeps in memory, and what it hands to PyTorch, is in
PyTorch's own dtype.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from pytorch_to_triton.graph.dtype_rules import all_dtypes, dtype_source, input_dtypes
from pytorch_to_triton.graph.skeleton import references, skeleton
from pytorch_to_triton.schema.dtype import DType
from pytorch_to_triton.schema.graph import Graph, Node


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
    return list(references((*node.args, *(node.kwargs[key] for key in sorted(node.kwargs)))))
