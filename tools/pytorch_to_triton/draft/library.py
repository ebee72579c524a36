"""Which calls PyTorch's libraries compute faster than any kernel here, so that only their tails are drafted.

Measured on one H200 (2026-11, torch 2.11, Triton 3.6): a dense 3x3 convolution as an implicit matrix product
reaches 0.28 to 0.6 of cuDNN's speed, a depthwise one 2.5 times it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytorch_to_triton.schema.graph import Literal_, Node, NodeRef, Shape


def never(node: Node, shapes: Mapping[str, Shape]) -> str | None:
    """Everything that a row lowers is drafted."""
    return None


def best_by_library(node: Node, shapes: Mapping[str, Shape]) -> str | None:
    """Why the call stays PyTorch's, or None."""
    if node.op == "aten.convolution.default" and not is_depthwise(node, shapes):
        return "the library's is faster"
    return None


def is_depthwise(node: Node, shapes: Mapping[str, Shape]) -> bool:
    """Whether each channel of a convolution is computed from one of the input's."""
    weight, transposed, groups = node.args[1], node.args[6], node.args[8]
    assert isinstance(weight, NodeRef)
    per_group = shapes[weight.name].traced[1]
    return per_group == 1 and transposed == Literal_(value=False) and groups != Literal_(value=1)
